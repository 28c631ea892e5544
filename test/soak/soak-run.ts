import { setTimeout as pause } from 'node:timers/promises'
import { createsAt, spoilRequests } from './faulty-upstream.js'
import { FinalAudit } from './final-audit.js'
import type { GatewayFleet } from './gateway-fleet.js'
import { findViolations } from './soak-checker.js'
import { CALLBACK_SCHEDULE_MS } from './soak-configuration.js'
import type { CreateAttempt, SoakRecords, StoreCounts } from './soak-records.js'
import type { SoakStage } from './soak-stage.js'
import { SoakWorker } from './soak-worker.js'

export interface SoakOptions {
  /** How many kills there are at least, and for how long they go on. */
  readonly kills?: number
  readonly chaosMs?: number
  /** Without kills, so that the memory of processes that live on can be watched; other faults go on. */
  readonly calmMs: number
  readonly killEveryMs: number
  readonly workers: number
  /** For everything to come to its end, after each start. */
  readonly patienceMs: number
}

export interface SoakOutcome {
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
    // Whoever fails is heard of below, after the kills.
    work.catch(() => undefined)
    await stage.fleet.killInTurn(options.killEveryMs, chaosEnd(stage.fleet, options))
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

/** Lets everything come to its end, and looks at it. Each start is a leap in time, so that nobody waits for leases. */
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
      // What is told now may have been made anew, and then has still to settle.
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
