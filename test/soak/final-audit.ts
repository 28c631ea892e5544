import { setTimeout as pause } from 'node:timers/promises'
import type { VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import type { Random } from './random.js'
import { type Answer, type Kind, KINDS, type Owner, type SoakCaller, taskIn, tasksIn } from './soak-caller.js'
import { RECONCILE_MS } from './soak-configuration.js'
import type { SoakLedger, TaskObject } from './soak-ledger.js'
import { type AuditedTask, type Delivery, isEnd, type Reading } from './soak-records.js'

const PAGE_SIZE = 500
const LOOK_EVERY_MS = 200
const AT_ONCE = 8
/** A lost create that is looked for in vain is seen in no list. */
const QUIET_MS = RECONCILE_MS + 500

interface ListedTask {
  readonly owner: Owner
  readonly kind: Kind
  readonly task: TaskObject
}

interface ShownDelivery {
  readonly webhook_id: string
  readonly attempts: number
  readonly delivered_at: number | null
  readonly exhausted_at: number | null
}

/** Looks at everything from outside, as the callers can. */
export class FinalAudit {
  constructor(
    private readonly caller: SoakCaller,
    private readonly owners: readonly Owner[],
    private readonly ledger: SoakLedger,
    private readonly random: Random,
  ) {}

  /**
   * Resolves once all that the upstream made is listed, every listed task has ended, every event is delivered or given up,
   * and no more is asked of the upstream; after `patienceMs` at the latest, with false: what is wrong then is for the
   * checker to say. Lists and events show what is stored: looking does not help the gateway along, as asking for a task
   * would.
   */
  async settled(simulator: VidgenSimulator, patienceMs: number): Promise<boolean> {
    const startedAtMs = performance.now()
    const quiet = new Set<string>()
    while (performance.now() - startedAtMs < patienceMs) {
      const listed = await this.listed()
      const ids = new Set(listed.map(({ task }) => task.task_id))
      const allEnded = listed.every(({ task }) => isEnd(task.task_status))
      const open = allEnded ? listed.filter(({ task }) => !quiet.has(task.task_id)) : []
      await inTurns(open, async ({ owner, kind, task: { task_id: id } }) => {
        const deliveries = await this.deliveries(owner, kind, id)
        if (deliveries.every(({ isDelivered, isExhausted }) => isDelivered || isExhausted)) quiet.add(id)
      })
      const heardAtMs = Math.max(startedAtMs, simulator.lastRequest?.arrivedAtMs ?? 0)
      const isQuiet = performance.now() - heardAtMs > QUIET_MS && quiet.size === ids.size
      if (allEnded && isQuiet && simulator.creates.every(({ id }) => ids.has(id))) return true
      await pause(LOOK_EVERY_MS)
    }
    return false
  }

  /** By owner, the ids in both lists. */
  async lists(): Promise<ReadonlyMap<string, readonly string[]>> {
    const listed = await this.listed()
    return new Map(
      this.owners.map((owner) => [
        owner.id,
        listed.filter((entry) => entry.owner === owner).map(({ task }) => task.task_id),
      ]),
    )
  }

  /** Every listed task, and every promised one, by each of its names. */
  async tasks(promised: readonly { readonly owner: string; readonly taskId: string }[]): Promise<AuditedTask[]> {
    const listed = await this.listed()
    const names = new Set(listed.map(({ owner, task }) => `${owner.id} ${task.task_id}`))
    const missing = promised.filter(({ owner, taskId }) => !names.has(`${owner} ${taskId}`))
    const unlisted = missing.map(({ owner, taskId }) => ({
      ...{ owner, taskId, deliveries: [] },
      ...{ byId: { httpStatus: 0 }, byOther: { httpStatus: 404 } },
    }))
    const audited: AuditedTask[] = []
    await inTurns(listed, async (entry) => {
      audited.push(await this.audit(entry))
    })
    return [...audited, ...unlisted]
  }

  private async audit({ owner, kind, task }: ListedTask): Promise<AuditedTask> {
    const { task_id: taskId, task_info: info } = task
    const externalId = info?.external_task_id ?? ''
    const other = this.owners.find((candidate) => candidate !== owner) ?? owner
    const byId = await this.ask(owner, `${kind}/${taskId}`)
    const shown = taskIn(byId)
    const named = `${kind}/${externalId}`
    return {
      ...{ owner: owner.id, taskId, byId: readingOf(byId) },
      ...(shown === undefined ? {} : { status: shown.task_status }),
      ...(externalId === ''
        ? {}
        : {
            externalId,
            byExternalId: readingOf(await this.ask(owner, named)),
            byOthersExternalId: readingOf(await this.ask(other, named)),
          }),
      byOther: readingOf(await this.ask(other, `${kind}/${taskId}`)),
      deliveries: await this.deliveries(owner, kind, taskId),
    }
  }

  private async listed(): Promise<readonly ListedTask[]> {
    const listed: ListedTask[] = []
    for (const owner of this.owners) {
      for (const kind of KINDS) {
        for (let page = 1; ; page += 1) {
          const answer = await this.ask(owner, `${kind}?pageNum=${page}&pageSize=${PAGE_SIZE}`)
          const tasks = tasksIn(answer)
          for (const task of tasks) {
            this.ledger.sight(task, answer.startedAtMs, answer.endedAtMs)
            listed.push({ owner, kind, task })
          }
          if (tasks.length < PAGE_SIZE) break
        }
      }
    }
    return listed
  }

  private async deliveries(owner: Owner, kind: Kind, id: string): Promise<readonly Delivery[]> {
    const { status, data } = await this.ask(owner, `${kind}/${id}/callbacks`)
    const shown = status === 200 && Array.isArray(data) ? (data as ShownDelivery[]) : []
    return shown.map(({ webhook_id: webhookId, attempts, delivered_at, exhausted_at }) => ({
      ...{ webhookId, attempts },
      isDelivered: delivered_at !== null,
      isExhausted: exhausted_at !== null,
    }))
  }

  private ask(owner: Owner, path: string): Promise<Answer> {
    return this.caller.insist({ owner, path }, this.random)
  }
}

function readingOf(answer: Answer): Reading {
  const task = taskIn(answer)
  return { httpStatus: answer.status, ...(task === undefined ? {} : { taskId: task.task_id }) }
}

/** Several at a time, in their order. */
async function inTurns<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values()
  const lane = async (): Promise<void> => {
    for (const item of rest) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}
