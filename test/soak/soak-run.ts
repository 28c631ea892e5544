import { setTimeout as pause } from 'node:timers/promises'
import type { VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { eventually } from '../support/eventually.js'
import type { GatewayFleet } from './gateway-fleet.js'
import {
  type Answer,
  CALLBACK_SCHEDULE_MS,
  createsAt,
  type Kind,
  KINDS,
  type Owner,
  RECONCILE_MS,
  type SoakCaller,
  spoilRequests,
  taskIn,
  tasksIn,
} from './soak-caller.js'
import { acknowledgedIn, findViolations } from './soak-checker.js'
import {
  type AuditedTask,
  type CreateAttempt,
  type Delivery,
  distinct,
  isEnd,
  type Random,
  type Reading,
  type SoakLedger,
  type SoakRecords,
  type StoreCounts,
  type TaskObject,
} from './soak-records.js'
import type { SoakStage } from './soak-stage.js'
import { SoakWorker } from './soak-worker.js'

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
class FinalAudit {
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
  const worker = async (): Promise<void> => {
    for (const item of rest) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

interface SoakOptions {
  /** How many kills there are at least, and for how long they go on. */
  readonly kills?: number
  readonly chaosMs?: number
  /** How many creates are acknowledged for each kill at least, counted from the start, however slow the machine. */
  readonly acknowledged?: number
  /** Without kills, so that the memory of processes that live on can be watched; other faults go on. */
  readonly calmMs: number
  readonly killEveryMs: number
  readonly workers: number
  /** For everything to come to its end, after each start. */
  readonly patienceMs: number
}

interface SoakOutcome {
  readonly violations: readonly string[]
  readonly records: SoakRecords
  readonly figures: SoakFigures
}

export interface SoakFigures {
  readonly chaosMs: number
  readonly kills: number
  readonly reads: number
  readonly lists: number
  /** Looks during the time without kills: MiB of each process, empty where the system does not tell. */
  readonly memory: readonly (readonly number[])[]
  readonly settleMs: number
  readonly logCharacters: number
}

/** Longer than every lease a killed process may have left behind, and than a lost create is looked for. */
const LEAP_MS = 900_000
const MOST_LEAPS = 4
const MEMORY_LOOKS = 6

/** The whole of it: chaos, a time without kills, rest, and a look at what is left. */
export async function runSoak(stage: SoakStage, options: SoakOptions): Promise<SoakOutcome> {
  const working = new AbortController()
  try {
    await stage.fleet.start()
    const chaosAtMs = performance.now()
    const workers = workersOf(stage, options.workers)
    const stopSpoiling = spoilRequests(stage.upstream, stage.random.fork())
    const work = Promise.all(workers.map((worker) => worker.run(working.signal)))
    // Failures are reported below, after the kills.
    work.catch(() => undefined)
    await stage.fleet.killInTurn(options.killEveryMs, workDone(stage, options), chaosEnd(stage.fleet, options))
    const chaosMs = performance.now() - chaosAtMs
    const memory = await watchedMemory(stage, options.calmMs)
    working.abort()
    await work
    stopSpoiling()
    const startedAtMs = performance.now()
    const records = await settle(stage, workers, options)
    const { kills } = stage.fleet
    const { reads, lists } = stage.ledger
    const { characters: logCharacters } = stage.logWatch
    const settleMs = performance.now() - startedAtMs
    const figures = { chaosMs, kills, reads, lists, memory, settleMs, logCharacters }
    return { violations: findViolations(records), records, figures }
  } finally {
    working.abort()
  }
}

function chaosEnd(fleet: GatewayFleet, { kills = 0, chaosMs = 0 }: SoakOptions): () => boolean {
  const endAtMs = performance.now() + chaosMs
  return () => fleet.kills >= kills && performance.now() >= endAtMs
}

/** Waits until so many creates have been acknowledged that the next kill may come. */
const workDone =
  ({ fleet, ledger }: SoakStage, { acknowledged = 0, patienceMs }: SoakOptions): (() => Promise<void>) =>
  () => {
    const count = (): number => acknowledgedIn(ledger.attempts).length
    return eventually(() => count() >= acknowledged * (fleet.kills + 1), count, patienceMs)
  }

function workersOf({ secrets, random, caller, ledger, receiver }: SoakStage, count: number): readonly SoakWorker[] {
  const { owners } = secrets
  const tasks = new Map(owners.map(({ id }) => [id, []]))
  const world = { caller, ledger, owners, tasks, callbackUrl: receiver.url }
  return Array.from({ length: count }, (_, index) => {
    const owner = owners[index % owners.length]
    if (owner === undefined) throw new Error('there are no callers')
    return new SoakWorker(world, owner, random.fork())
  })
}

async function watchedMemory({ fleet }: SoakStage, calmMs: number): Promise<SoakFigures['memory']> {
  const looks: (readonly number[])[] = []
  while (calmMs > 0 && looks.length < MEMORY_LOOKS) {
    await pause(calmMs / MEMORY_LOOKS)
    looks.push(await fleet.memory())
  }
  return looks
}

/** Lets everything come to its end, and looks at it. Each start advances the clock, so that no lease is waited for. */
async function settle(
  stage: SoakStage,
  workers: readonly SoakWorker[],
  { patienceMs }: SoakOptions,
): Promise<SoakRecords> {
  const { fleet, ledger, upstream, receiver, store } = stage
  const audit = new FinalAudit(stage.caller, stage.secrets.owners, ledger, stage.random.fork())
  receiver.isWell = true
  for (let leap = 1; ; leap += 1) {
    await fleet.stop()
    await fleet.leap(LEAP_MS)
    let hasSettled = await audit.settled(upstream, patienceMs)
    if (leap === 1 && hasSettled) {
      // The present tasks may have been created again, and then must still settle.
      await Promise.all(workers.map((worker) => worker.repeatUnclear()))
      hasSettled = await audit.settled(upstream, patienceMs)
    }
    const creates = createsAt(upstream, stage.secrets.owners)
    const lists = await audit.lists()
    const audited = await audit.tasks([...ledger.attempts.flatMap(promiseOf), ...creates])
    await fleet.stop()
    const counts = await store.look()
    if (isAtRest(counts) || !hasSettled || leap === MOST_LEAPS) {
      const { attempts, sightings, trespasses, callbacks } = ledger
      return {
        ...{ attempts, sightings, trespasses, callbacks, lists, audited, store: counts },
        ...{ upstream: creates, upstreamDuplicates: upstream.duplicates },
        ...{ processFaults: stage.logWatch.faults, callbackAttempts: CALLBACK_SCHEDULE_MS.length },
      }
    }
  }
}

const isAtRest = ({ states, waitingEvents }: StoreCounts): boolean =>
  waitingEvents === 0 && Object.keys(states).every((state) => state === 'succeed' || state === 'failed')

const promiseOf = ({ owner, taskId }: CreateAttempt): { owner: string; taskId: string }[] =>
  taskId === undefined ? [] : [{ owner, taskId }]

const count = (value: number): string => value.toLocaleString('en-US')
const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`

/** One run in a few lines. */
export function describeRun(what: string, { calmMs, workers }: SoakOptions, outcome: SoakOutcome): string {
  const { violations, records, figures } = outcome
  const { attempts, upstream, callbacks, audited, store: rows, sightings } = records
  const told = (wanted: string): number => attempts.filter(({ outcome: learnt }) => learnt === wanted).length
  const acknowledged = new Set(attempts.map(({ taskId }) => taskId))
  const recovered = upstream.filter(({ taskId }) => !acknowledged.has(taskId)).length
  const failedCallbacks = callbacks.filter(({ answer }) => answer !== 'taken').length
  const events = distinct(callbacks.map(({ webhookId }) => webhookId)).length
  const memory = (figures.memory[0] ?? []).map((_, process) => figures.memory.map((look) => look[process]).join(', '))
  return [
    `soak ${what}: ${seconds(figures.chaosMs)} with ${figures.kills} kills and ${seconds(calmMs)} without, ${workers} workers`,
    `${count(attempts.length)} creates sent: ${count(told('acknowledged'))} acknowledged, ${count(told('refused'))} refused, ${count(told('unclear'))} without an answer`,
    `${count(upstream.length)} tasks made upstream, ${count(recovered)} of them found after a lost answer, ${records.upstreamDuplicates.length} asked for twice`,
    `${count(figures.reads)} reads and ${count(figures.lists)} lists with ${count(sightings.length)} sightings; ${count(audited.length)} tasks listed, ${count(audited.filter(({ status }) => isEnd(status)).length)} of them ended`,
    `${count(events)} events in ${count(callbacks.length)} callbacks, ${count(failedCallbacks)} of them failed; ${count(rows.exhaustedEvents)} events given up`,
    `settled in ${seconds(figures.settleMs)}; ${count(figures.logCharacters)} characters of logs; MiB of memory without kills: ${memory.join(' and ') || 'not measured'}`,
    `${violations.length} violations`,
  ].join('\n  ')
}
