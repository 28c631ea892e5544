import { setTimeout as wait } from 'node:timers/promises'
import { SocketLoad } from '../driver/socket-load.mjs'
import { median } from '../statistics.mjs'

const SAMPLE_MS = 50
/** Resident memory moves with the garbage collector: a level is the median of the samples of this long. */
const LEVEL_MS = 1_000

/** The client's dialect on each path; the upstream uses GA. `target` is the highest accepted ratio to the bare pipe. */
const PATHS = {
  bare: { title: 'bare ws pipe', role: 'yardstick', dialect: 'ga' },
  untranslated: { title: 'gateway, GA to GA', role: 'gateway', dialect: 'ga', target: 1.15 },
  translated: { title: 'gateway, beta to GA', role: 'gateway', dialect: 'beta', target: 2 },
}
const NAMES = Object.keys(PATHS)

/** The yardstick translates nothing, so in a self-test every client uses GA. */
const dialectOf = (session, { dialect }) => (session.selfTest ? 'ga' : dialect)

async function upstreamFaults(session) {
  const { outOfOrder, changed } = (await session.control('counters')).realtime
  return { outOfOrder, changed }
}

/** Until the upstream has seen all sessions end; only then it knows all their faults. */
async function untilClosed(session) {
  for (let tries = 0; tries < 100; tries++) {
    if ((await session.control('counters')).realtime.open === 0) return
    await wait(50)
  }
  session.voids.push('realtime: sessions at the upstream did not end with their clients')
}

/** Sessions open, warm, then `run(load)`; what was lost or disordered in either direction makes the run void. */
async function withSessions(session, target, { title, ...path }, plan, run) {
  const before = await upstreamFaults(session)
  const load = new SocketLoad()
  await load.open({ port: target.port, dialect: dialectOf(session, path), count: plan.sessions })
  const warmUp = await load.stream({ framesPerSecond: plan.framesPerSecond, durationMs: plan.warmUpMs })
  const result = await run(load)
  await load.close()
  await untilClosed(session)
  const after = await upstreamFaults(session)
  const faults = {
    lost: warmUp.lost + result.lost,
    outOfOrder: warmUp.outOfOrder + result.outOfOrder + after.outOfOrder - before.outOfOrder,
    changed: warmUp.changed + result.changed + after.changed - before.changed,
  }
  for (const [name, count] of Object.entries(faults)) {
    if (count > 0) session.voids.push(`realtime, ${title}: ${count} frames ${name}`)
  }
  return { ...result, ...faults }
}

/** CPU per forwarded frame: each append and each delta is one. */
async function slot(session, name, plan) {
  const path = PATHS[name]
  const target = session[path.role]
  const load = { framesPerSecond: plan.framesPerSecond, durationMs: plan.slotMs }
  const result = await withSessions(session, target, path, plan, (sessions) =>
    session.slot(target, 'realtime', () => sessions.stream(load)),
  )
  return { ...result, frames: result.completed * 2, usPerFrame: result.targetUs / (result.completed * 2) }
}

/** All paths one after the other, in rotating order. */
async function round(session, index, plan) {
  const slots = {}
  for (let step = 0; step < NAMES.length; step++) {
    const name = NAMES[(index + step) % NAMES.length]
    slots[name] = await slot(session, name, plan)
  }
  return slots
}

function summary(name, rounds) {
  const { title, target } = PATHS[name]
  const slots = rounds.map((one) => one[name])
  const ratios = rounds.map((one) => one[name].usPerFrame / one.bare.usPerFrame)
  const total = (key) => slots.reduce((sum, one) => sum + one[key], 0)
  const ratio = median(ratios)
  return {
    title,
    usPerFrame: median(slots.map((one) => one.usPerFrame)),
    ratio,
    lowestRatio: Math.min(...ratios),
    highestRatio: Math.max(...ratios),
    target,
    met: target === undefined ? undefined : ratio <= target,
    frames: total('frames'),
    lost: total('lost'),
    outOfOrder: total('outOfOrder'),
    changed: total('changed'),
    driverShare: Math.max(...slots.map((one) => one.driver)),
    upstreamShare: Math.max(...slots.map((one) => one.upstream)),
    slots: slots.map(({ usPerFrame, frames, wallMs }) => ({ usPerFrame, frames, wallMs })),
  }
}

/** Resident memory of the service while `run` is under way: the level at its start and at its end, and the highest. */
async function levels(service, run) {
  const samples = []
  const timer = setInterval(() => samples.push(service.residentBytes()), SAMPLE_MS)
  const result = await run().finally(() => clearInterval(timer))
  const count = Math.min(samples.length, LEVEL_MS / SAMPLE_MS)
  const startBytes = median(samples.slice(0, count))
  const endBytes = median(samples.slice(-count))
  return { ...result, startBytes, endBytes, growthBytes: endBytes - startBytes, peakBytes: Math.max(...samples) }
}

/** A process of its own, streaming for longer than a slot. */
async function memory(session, name, plan) {
  const path = PATHS[name]
  const target = path.role === 'gateway' ? await session.startGateway() : await session.startYardstick()
  const idleBytes = target.service.residentBytes()
  const load = { framesPerSecond: plan.framesPerSecond, durationMs: plan.memoryMs }
  try {
    const { startBytes, endBytes, growthBytes, peakBytes } = await withSessions(
      session,
      target,
      path,
      { ...plan, warmUpMs: plan.memoryWarmUpMs },
      (sessions) => levels(target.service, () => session.slot(target, 'realtime', () => sessions.stream(load))),
    )
    return { idleBytes, startBytes, endBytes, growthBytes, peakBytes }
  } finally {
    await target.service.stop()
  }
}

/** Sessions that stream audio both ways: CPU per forwarded frame, frames lost or disordered, growth of memory. */
export async function measureRealtime(session, { realtime: plan }) {
  const rounds = []
  for (let index = 0; index < plan.rounds; index++) rounds.push(await round(session, index, plan))
  const paths = Object.fromEntries(NAMES.map((name) => [name, summary(name, rounds)]))
  const resident = {}
  for (const name of plan.memoryPaths) resident[name] = await memory(session, name, plan)
  return { plan, paths, memory: resident }
}
