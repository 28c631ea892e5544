/**
 * `node bench/run.mjs [--quick] [--self-test] [--out <file>]`: see README.md beside this file.
 * Exit code 0 when the figures are valid (targets missed or not), 1 when the run is void or broken.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { measureCpu } from './measure/cpu.mjs'
import { measureLatency } from './measure/latency.mjs'
import { measureMemory } from './measure/memory.mjs'
import { measureRealtime } from './measure/realtime.mjs'
import { measureStart } from './measure/start.mjs'
import { measureTasks } from './measure/tasks.mjs'
import { measureTranslated } from './measure/translated.mjs'
import { stopAll } from './processes.mjs'
import { report } from './report.mjs'
import { SCENARIOS } from './scenarios.mjs'
import { GATEWAY_SCRIPT, Session } from './session.mjs'

const FULL = {
  limitMs: 1_200_000,
  cpu: { rounds: 7, slotMs: 1_100, warmUpSlotMs: 1_000, warmUpLimitMs: 15_000 },
  upload: { rounds: 3, slotMs: 2_000, warmUpSlotMs: 1_000, warmUpLimitMs: 4_000 },
  start: { starts: 3 },
  translated: { pairs: 5, slotMs: 800, warmUpSlotMs: 600, warmUpLimitMs: 6_000 },
  latency: { rounds: 3, durationMs: 3_000, ratePerSecond: 400 },
  firstByte: { rounds: 3, durationMs: 2_500, ratePerSecond: 40, frames: 20, paceMs: 5 },
  memory: {
    cases: ['openStreams', 'speechSlow', 'speechFast', 'upload'],
    speechBytes: 200_000_000,
    slowBytesPerSecond: 50_000_000,
    openStreams: { streams: 200, frames: 30, paceMs: 100 },
  },
  realtime: {
    sessions: 200,
    framesPerSecond: 25,
    rounds: 5,
    warmUpMs: 700,
    slotMs: 2_000,
    memoryPaths: ['bare', 'untranslated', 'translated'],
    memoryWarmUpMs: 3_000,
    memoryMs: 8_000,
  },
  tasks: {
    create: { pairs: 3, slotMs: 1_000, warmUpMs: 2_000, latencyMs: 1_500, ratePerSecond: 20 },
    read: { pairs: 3, slotMs: 600, warmUpMs: 700, latencyMs: 1_500, ratePerSecond: 100 },
    crowd: {
      inFlight: 5_000,
      warmUpMs: 1_500,
      pollMs: 3_000,
      chat: { rounds: 2, ratePerSecond: 400, durationMs: 2_000 },
    },
  },
}

const QUICK = {
  limitMs: 240_000,
  cpu: { rounds: 1, slotMs: 350, warmUpSlotMs: 250, warmUpLimitMs: 250 },
  upload: { rounds: 1, slotMs: 400, warmUpSlotMs: 100, warmUpLimitMs: 100 },
  start: { starts: 1 },
  translated: { pairs: 1, slotMs: 350, warmUpSlotMs: 250, warmUpLimitMs: 250 },
  latency: { rounds: 1, durationMs: 1_000, ratePerSecond: 200 },
  firstByte: { rounds: 1, durationMs: 1_000, ratePerSecond: 30, frames: 10, paceMs: 5 },
  memory: {
    cases: ['openStreams', 'speechSlow'],
    speechBytes: 50_000_000,
    slowBytesPerSecond: 50_000_000,
    openStreams: { streams: 200, frames: 10, paceMs: 100 },
  },
  realtime: {
    sessions: 200,
    framesPerSecond: 25,
    rounds: 1,
    warmUpMs: 300,
    slotMs: 600,
    memoryPaths: ['translated'],
    memoryWarmUpMs: 1_000,
    memoryMs: 1_500,
  },
  tasks: {
    create: { pairs: 1, slotMs: 400, warmUpMs: 200, latencyMs: 500, ratePerSecond: 20 },
    read: { pairs: 1, slotMs: 300, warmUpMs: 200, latencyMs: 500, ratePerSecond: 60 },
    crowd: {
      inFlight: 5_000,
      warmUpMs: 300,
      pollMs: 1_000,
      chat: { rounds: 1, ratePerSecond: 200, durationMs: 1_000 },
    },
  },
}

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean' }, 'self-test': { type: 'boolean' }, out: { type: 'string' } },
})
const quick = options.quick === true
const selfTest = options['self-test'] === true

/** Only a valid full run of the gateway itself replaces the figures that are kept. */
function outFile({ voids }) {
  const keep = !quick && !selfTest && voids.length === 0
  return options.out ?? fileURLToPath(new URL(keep ? 'results.json' : 'results.local.json', import.meta.url))
}

async function end(code) {
  await stopAll()
  process.exit(code)
}

function machine() {
  const [first] = cpus()
  return {
    cpu: first?.model ?? 'unknown',
    cores: cpus().length,
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    loadBefore: loadavg()[0].toFixed(2),
  }
}

function changedAnswers({ yardstick, gateway, peers }) {
  return [yardstick, gateway, ...Object.values(peers)].flatMap((target) =>
    Object.entries(target.identical).flatMap(([name, same]) =>
      same ? [] : [`${target.name}, ${SCENARIOS[name].title}`],
    ),
  )
}

async function measure(plan) {
  const about = { date: new Date().toISOString(), mode: quick ? 'quick' : 'full', selfTest, machine: machine() }
  const session = new Session({ selfTest })
  const step = async (title, work) => {
    const start = performance.now()
    const result = await work()
    console.error(`${title}: ${((performance.now() - start) / 1000).toFixed(1)} s`)
    return result
  }
  await step('start and check', () => session.start())
  const cpu = await step('CPU', () => measureCpu(session, plan))
  const start = await step('start', () => measureStart(session, plan, cpu))
  const translated = await step('translated', () => measureTranslated(session, plan, cpu))
  const latency = await step('latency', () => measureLatency(session, plan))
  const memory = await step('memory', () => measureMemory(session, plan))
  const realtime = await step('realtime', () => measureRealtime(session, plan))
  const tasks = await step('tasks', () => measureTasks(session, plan))
  if (!quick) session.checkMachine()
  const { voids, driverShare, othersShare, notRun } = session
  const tookSeconds = performance.now() / 1000
  return {
    ...about,
    tookSeconds,
    driverShare,
    othersShare,
    notRun,
    voids,
    changedAnswers: changedAnswers(session),
    cpu,
    start,
    translated,
    latency,
    memory,
    realtime,
    tasks,
    plan,
  }
}

async function main() {
  if (!selfTest && !existsSync(GATEWAY_SCRIPT)) {
    console.error('dist/main.js is missing: run `npm run build` first.')
    return 1
  }
  try {
    const results = await measure(quick ? QUICK : FULL)
    writeFileSync(outFile(results), `${JSON.stringify(results, null, 2)}\n`)
    console.log(report(results))
    return results.voids.length === 0 ? 0 : 1
  } catch (error) {
    console.error(`BROKEN: ${error.stack}`)
    return 1
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => end(1))
setTimeout(
  () => {
    console.error('BROKEN: the run took too long')
    void end(1)
  },
  (quick ? QUICK : FULL).limitMs,
).unref()
await end(await main())
