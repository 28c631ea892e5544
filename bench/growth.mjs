/**
 * `node bench/growth.mjs [--only <names>] [--starts <number>] [--rounds <number>]`: see README.md beside this file.
 * Exit code 0 when the figures are valid (aims missed or not), 1 when the run is void or broken.
 */
import { cpus, loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { closedLoop } from './driver/closed-loop.mjs'
import { growthReport } from './growth/report.mjs'
import { ROWS } from './growth/rows.mjs'
import { warmUp } from './measure/cpu.mjs'
import { stopAll } from './processes.mjs'
import { SCENARIOS, wireBytes } from './scenarios.mjs'
import { Session } from './session.mjs'
import { median } from './statistics.mjs'

const LIMIT_MS = 1_800_000
const SLOT_MS = 1_000
const WARM_UP = { warmUpSlotMs: 1_000, warmUpLimitMs: 8_000 }
const ROLES = ['base', 'variant']
/** Longer than a batch of usage waits to fill. */
const BATCH_MS = 1_100
const QUIET_MS = 200
/** CPU time of a process that does nothing, for so long. */
const QUIET_US = 10_000
const QUIET_LIMIT_MS = 60_000

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    starts: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '5' },
  },
})

/** What a slot has left to be written is part of its cost. */
async function untilQuiet({ service }) {
  const deadline = performance.now() + QUIET_LIMIT_MS
  await wait(BATCH_MS)
  for (let before = service.cpuMicroseconds(); performance.now() < deadline;) {
    await wait(QUIET_MS)
    const now = service.cpuMicroseconds()
    if (now - before <= QUIET_US) return
    before = now
  }
  throw new Error(`${service.name} is still at work ${QUIET_LIMIT_MS} ms after the last call`)
}

/** Always the same call, where nothing else is asked for. */
const sameCall = (target) => {
  const call = { request: wireBytes(SCENARIOS.chat.request, target), expectedBytes: target.expected.chat }
  return () => call
}

async function startRole(session, row, role, prepared) {
  const target = await session.startGateway({ ...row[role], ...(role === 'variant' ? prepared : {}) })
  await session.probe(target, { chat: SCENARIOS.chat })
  return { ...target, name: `${row.title}, ${role}`, nextCall: (row.calls?.[role] ?? sameCall)(target) }
}

async function slot(session, row, target) {
  const { port, nextCall } = target
  const { targetUs, companionsUs, completed } = await session.slot(target, 'chat', async () => {
    const result = await closedLoop({ port, nextCall, concurrency: SCENARIOS.chat.concurrency, durationMs: SLOT_MS })
    if (row.writes) await untilQuiet(target)
    return result
  })
  return { us: targetUs / completed, companionsUs: companionsUs / completed, bytes: target.service.residentBytes() }
}

/** Slots in alternating order, so that a drift of the machine hits both alike. */
async function roundsOf(session, row, targets) {
  const rounds = []
  for (let index = 0; index < Number(options.rounds); index++) {
    const round = {}
    for (const role of index % 2 === 0 ? ROLES : ROLES.toReversed())
      round[role] = await slot(session, row, targets[role])
    rounds.push(round)
  }
  return rounds
}

/** Two processes of the same code differ by a tenth: what counts is the median of several pairs of them. */
function summary(row, pairs) {
  const rounds = pairs.flatMap((pair) => pair.rounds)
  const ratios = pairs.map((pair) => median(pair.rounds.map(({ base, variant }) => variant.us / base.us)))
  const adds = pairs.map((pair) => median(pair.rounds.map(({ base, variant }) => variant.us - base.us)))
  const highest = (role) => Math.max(...rounds.map((round) => round[role].bytes))
  return {
    title: row.title,
    aim: row.aim,
    baseUs: median(rounds.map(({ base }) => base.us)),
    variantUs: median(rounds.map(({ variant }) => variant.us)),
    ratio: median(ratios),
    lowestRatio: Math.min(...ratios),
    highestRatio: Math.max(...ratios),
    addsUs: median(adds),
    serverUs: median(rounds.map(({ variant }) => variant.companionsUs)),
    baseBytes: highest('base'),
    variantBytes: highest('variant'),
    settled: Object.fromEntries(ROLES.map((role) => [role, pairs.every(({ settled }) => settled[role])])),
  }
}

async function measureRow(session, row) {
  const missing = row.missing?.()
  if (missing !== undefined) return { title: row.title, missing }
  const pairs = []
  for (let start = 0; start < Number(options.starts); start++) pairs.push(await measurePair(session, row, start))
  return summary(row, pairs)
}

/** One start of both gateways, the base first in every other pair. */
async function measurePair(session, row, start) {
  const roles = start % 2 === 0 ? ROLES : ROLES.toReversed()
  const { end, ...prepared } = (await row.prepare?.(session)) ?? {}
  const targets = {}
  for (const role of roles) targets[role] = await startRole(session, row, role, prepared)
  const endBefore = await row.before?.(session, targets.variant)
  const settled = {}
  for (const role of roles) {
    const scenario = { ...SCENARIOS.chat, nextCall: targets[role].nextCall }
    settled[role] = await warmUp(session, targets[role], 'chat', WARM_UP, scenario)
    if (row.writes) await untilQuiet(targets[role])
  }
  const rounds = await roundsOf(session, row, targets)
  endBefore?.()
  for (const role of ROLES) await targets[role].service.stop()
  await end?.()
  return { rounds, settled }
}

async function measure() {
  const load = loadavg()[0].toFixed(2)
  const names = options.only?.split(',') ?? Object.keys(ROWS)
  const unknown = names.filter((name) => ROWS[name] === undefined)
  if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(ROWS).join()}; unknown: ${unknown.join()}`)
  const session = new Session({ selfTest: false })
  await session.startUpstream()
  session.direct = { bodies: {} }
  const rows = []
  for (const name of names) {
    const start = performance.now()
    rows.push(await measureRow(session, ROWS[name]))
    console.error(`${ROWS[name].title}: ${((performance.now() - start) / 1000).toFixed(1)} s`)
  }
  session.checkMachine()
  const { voids, driverShare, othersShare } = session
  const machine = `${cpus()[0]?.model ?? 'unknown'} x ${cpus().length}, Node ${process.version}, load ${load} before`
  return {
    machine,
    starts: Number(options.starts),
    rounds: Number(options.rounds),
    rows,
    voids,
    driverShare,
    othersShare,
  }
}

async function main() {
  try {
    const results = await measure()
    console.log(growthReport(results))
    return results.voids.length === 0 ? 0 : 1
  } catch (error) {
    console.error(`BROKEN: ${error.stack}`)
    return 1
  }
}

async function end(code) {
  await stopAll()
  process.exit(code)
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => end(1))
setTimeout(() => {
  console.error('BROKEN: the run took too long')
  void end(1)
}, LIMIT_MS).unref()
await end(await main())
