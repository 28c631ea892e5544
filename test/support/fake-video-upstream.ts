import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CallContext } from '../../src/providers/call-context.js'
import type {
  UpstreamVideoTask,
  VideoKind,
  VideoProvider,
  VideoTaskStatus,
} from '../../src/providers/video.contract.js'

interface MadeTask {
  readonly id: string
  readonly externalId: string
  readonly channelId: string
  status: VideoTaskStatus
}

/** How one create goes wrong: before the task is made, or after it, when only the answer is lost. */
export interface CreateFault {
  readonly when: 'before' | 'after'
  readonly error: Error
}

/** Upstream accounts in memory, one per channel, that behave like the real one; what goes wrong is said beforehand. */
export class FakeVideoUpstream implements VideoProvider {
  readonly made: MadeTask[] = []
  /** Each create that arrived: its channel, external id and callback address. */
  readonly creates: { readonly channelId: string; readonly externalId: string; readonly callbackUrl?: string }[] = []
  /** Each read that arrived, by the id it asked for. */
  readonly reads: string[] = []
  /** For the next creates, in turn. */
  readonly createFaults: CreateFault[] = []
  /** What a read by an id rejects with; undefined = it is answered. */
  readFault: (id: string) => Error | undefined = () => undefined
  /** Ids the upstream pretends not to know. */
  readonly hidden = new Set<string>()
  /** The state a new task is made in. */
  firstStatus: VideoTaskStatus = 'submitted'
  readsUnderWay = 0
  mostReadsAtOnce = 0
  private createGate: Promise<void> | undefined
  private readGate: Promise<void> | undefined

  /** From now on creates make their tasks and are not answered until the returned function is called. */
  holdCreates(): () => void {
    let release: () => void = () => undefined
    this.createGate = new Promise((resolve) => {
      release = resolve
    })
    return release
  }

  /** Reads that begin from now on are not answered until the returned function is called. */
  holdReads(): () => void {
    let release: () => void = () => undefined
    this.readGate = new Promise((resolve) => {
      release = resolve
    })
    return release
  }

  /** Moves every task, or one, to a state. */
  move(status: VideoTaskStatus, externalIdEnd = ''): void {
    for (const task of this.made) if (task.externalId.endsWith(externalIdEnd)) task.status = status
  }

  async create(_kind: VideoKind, body: Buffer, { channelId }: CallContext): Promise<UpstreamVideoTask> {
    const { externalId, callbackUrl } = JSON.parse(body.toString()) as { externalId: string; callbackUrl?: string }
    this.creates.push({ channelId, externalId, ...(callbackUrl === undefined ? {} : { callbackUrl }) })
    const fault = this.createFaults.shift()
    if (fault?.when === 'before') throw fault.error
    const task: MadeTask = { id: `${830_000 + this.made.length}`, externalId, channelId, status: this.firstStatus }
    this.made.push(task)
    await this.createGate
    if (fault !== undefined) throw fault.error
    return shown(task)
  }

  async read(_kind: VideoKind, id: string, { channelId }: CallContext): Promise<UpstreamVideoTask | undefined> {
    this.reads.push(id)
    this.readsUnderWay++
    this.mostReadsAtOnce = Math.max(this.mostReadsAtOnce, this.readsUnderWay)
    try {
      await this.readGate
      // No answer comes in the turn of its question.
      await nextTurn()
      const fault = this.readFault(id)
      if (fault !== undefined) throw fault
      const task = this.made.find((other) => other.channelId === channelId && [other.id, other.externalId].includes(id))
      return task === undefined || this.hidden.has(task.id) ? undefined : shown(task)
    } finally {
      this.readsUnderWay--
    }
  }
}

/** With what a careless relay would change: a big integer, a number's spelling, a field nobody knows. */
const shown = ({ id, externalId, status }: MadeTask): UpstreamVideoTask => ({
  id,
  status,
  object:
    `{"task_id":"${id}","task_status":"${status}","task_info":{"external_task_id":"${externalId}"},` +
    '"seed":12345678901234567890,"weight":1.0,"unheard_of":[null],"created_at":1750000000000,"updated_at":1750000000000}',
  message: 'SUCCEED',
})
