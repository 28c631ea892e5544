import { setImmediate as nextTurn } from 'node:timers/promises'
import { Global, Module } from '@nestjs/common'
import {
  type EndedTask,
  type SettledTask,
  type ResponseUsage,
  type UsageRecord,
  UsageRecorder,
} from '../../src/core/usage-record.js'
import type {
  AttemptContext,
  UpstreamVideoTask,
  VideoKind,
  VideoProvider,
  VideoTaskStatus,
} from '../../src/providers/contract.js'
import type { NewTask, TaskChange, TaskRepository } from '../../src/tasks/task.repository.js'

/** 2026-03-04, noon in UTC. */
export const NOON_MS = Date.UTC(2026, 2, 4, 12)

let usageCount = 0

/** A chat call of team A; what is given replaces the defaults. */
export const usageRecord = (changes: Partial<UsageRecord> = {}): UsageRecord => ({
  id: `use_${++usageCount}`,
  atMs: NOON_MS,
  requestId: 'req_1',
  keyId: 'team-a',
  ownerId: 'team-a',
  kind: 'request',
  route: '/v1/chat/completions',
  model: 'gpt-4o',
  channelId: 'p1-main',
  outcome: 'ok',
  durationMs: 12,
  units: { promptTokens: 10, completionTokens: 5 },
  reported: '{"prompt_tokens":10,"completion_tokens":5}',
  estimated: null,
  pricing: 'priced',
  cost: '0.1',
  ...changes,
})

/** Keeps what it receives. */
export class CollectedUsage extends UsageRecorder {
  readonly entries: ResponseUsage[] = []
  readonly tasks: EndedTask[] = []
  /** Those whose records were written down with their ends. */
  readonly settled: EndedTask[] = []

  override record(entry: ResponseUsage): void {
    this.entries.push(entry)
  }

  override taskEnded(task: EndedTask): void {
    this.tasks.push(task)
  }

  override settleTask(task: EndedTask): SettledTask {
    return {
      record: usageRecord({ id: `task ${task.id}`, kind: 'task' }),
      whenWritten: () => {
        this.settled.push(task)
        this.tasks.push(task)
      },
    }
  }
}

/** For applications that are made of less than all modules. */
@Global()
@Module({ providers: [{ provide: UsageRecorder, useClass: CollectedUsage }], exports: [UsageRecorder] })
export class CollectedUsageModule {}

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

  async create(_kind: VideoKind, body: readonly Buffer[], { channelId }: AttemptContext): Promise<UpstreamVideoTask> {
    const { externalId, callbackUrl } = JSON.parse(Buffer.concat(body).toString()) as {
      externalId: string
      callbackUrl?: string
    }
    this.creates.push({ channelId, externalId, ...(callbackUrl === undefined ? {} : { callbackUrl }) })
    const fault = this.createFaults.shift()
    if (fault?.when === 'before') throw fault.error
    const task: MadeTask = { id: `${830_000 + this.made.length}`, externalId, channelId, status: this.firstStatus }
    this.made.push(task)
    await this.createGate
    if (fault !== undefined) throw fault.error
    return shown(task)
  }

  async read(_kind: VideoKind, id: string, { channelId }: AttemptContext): Promise<UpstreamVideoTask | undefined> {
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

/** With what a careless relay would change: a big integer, a number's spelling, an unknown field. */
const shown = ({ id, externalId, status }: MadeTask): UpstreamVideoTask => ({
  id,
  status,
  object:
    `{"task_id":"${id}","task_status":"${status}","task_info":{"external_task_id":"${externalId}"},` +
    '"seed":12345678901234567890,"weight":1.0,"unheard_of":[null],"created_at":1750000000000,"updated_at":1750000000000}',
  message: 'SUCCEED',
})

/** Some Unix time in milliseconds that all rows begin at. */
export const START_MS = 1_800_000_000_000
export const DAY_MS = 86_400_000

let taskCount = 0

/** An intent unlike any other, but for what is given. */
export function someTask(given: Partial<NewTask> = {}): NewTask {
  taskCount += 1
  return {
    id: `task-${taskCount}`,
    kind: 'text2video',
    ownerId: 'key-a',
    channelId: 'vidgen-main',
    model: 'vidgen-v1-6',
    upstreamExternalId: `prefix.${taskCount}`,
    callbackToken: `token-${taskCount}`,
    createdAtMs: START_MS + taskCount,
    lockedUntilMs: START_MS + 60_000,
    deadlineAtMs: START_MS + DAY_MS,
    ...given,
  }
}

/** What a create that went well is followed by. */
export const submitted = (given: Partial<TaskChange> = {}): TaskChange => ({
  from: ['creating', 'unknown'],
  state: 'submitted',
  upstreamTaskId: `upstream-${(taskCount += 1)}`,
  object: '{"task_status":"submitted"}',
  nextPollAtMs: START_MS + 5_000,
  polls: 0,
  misses: 0,
  updatedAtMs: START_MS + 1_000,
  deadlineAtMs: START_MS + DAY_MS,
  ...given,
})

/** Records an intent and its good end; resolves with our id. */
export async function someSubmitted(
  tasks: TaskRepository,
  given: Partial<NewTask> = {},
  change: Partial<TaskChange> = {},
): Promise<string> {
  const task = someTask(given)
  await tasks.recordIntent(task)
  await tasks.change(task.id, submitted(change))
  return task.id
}
