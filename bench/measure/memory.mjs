import { setTimeout as wait } from 'node:timers/promises'
import { closedLoop } from '../driver/closed-loop.mjs'
import { exchangeOnce } from '../driver/connection.mjs'
import { longSpeech, pacedStream, SCENARIOS, wireBytes } from '../scenarios.mjs'
import { pacedBytes } from './latency.mjs'

const SAMPLE_MS = 20
const SETTLE_MS = 300
/** What a slow reader may take ahead of its rate. */
const READ_AHEAD_BYTES = 256 * 1024
const WARM_UP = { chat: 500, streamPlain: 50, speech: 20 }

async function warmUp(target) {
  for (const [name, limit] of Object.entries(WARM_UP)) {
    const load = { request: wireBytes(SCENARIOS[name].request, target), expectedBytes: target.expected[name] }
    await closedLoop({ port: target.port, ...load, concurrency: 8, durationMs: 5_000, limit })
  }
  await wait(SETTLE_MS)
}

/** Resident memory before, at its highest, and the growth, in bytes, while `run` is under way. */
async function whileSampling(target, run) {
  const before = target.service.residentBytes()
  let peak = before
  const timer = setInterval(() => (peak = Math.max(peak, target.service.residentBytes())), SAMPLE_MS)
  try {
    const result = await run()
    return { result, figures: { beforeBytes: before, peakBytes: peak, growthBytes: peak - before } }
  } finally {
    clearInterval(timer)
  }
}

/** Reads nothing for the first second, then at the rate given. */
function slowly(bytesPerSecond) {
  const start = performance.now() + 1_000
  let taken = 0
  return (connection, _buffer, from, to) => {
    taken += to - from
    const waitMs = start + ((taken - READ_AHEAD_BYTES) * 1000) / bytesPerSecond - performance.now()
    if (waitMs <= 0) return
    connection.pause()
    setTimeout(() => connection.resume(), waitMs)
  }
}

async function speechRun(target, { bytes, bytesPerSecond }) {
  const onBody = bytesPerSecond === undefined ? undefined : slowly(bytesPerSecond)
  const request = wireBytes(longSpeech(bytes), target)
  const answer = await exchangeOnce(target.port, request, { keepBody: false, onBody, timeoutMs: 60_000 })
  if (answer.status !== 200 || answer.bodyBytes !== bytes) {
    throw new Error(`${target.name}: long speech answered ${answer.status} with ${answer.bodyBytes} bytes`)
  }
  return { completed: 1, bodyBytes: bytes }
}

async function uploadRun(target) {
  const load = { request: wireBytes(SCENARIOS.upload.request, target), expectedBytes: target.expected.upload }
  return closedLoop({ port: target.port, ...load, concurrency: 1, durationMs: 10_000, limit: 1 })
}

async function openStreamsRun(session, target, { streams, frames, paceMs }) {
  await session.control('reset-peak')
  const load = { request: wireBytes(pacedStream(frames, paceMs), target), expectedBytes: pacedBytes(frames) }
  const run = { port: target.port, ...load, concurrency: streams, durationMs: 5_000, limit: streams }
  const result = await closedLoop(run)
  const { open } = await session.control('counters')
  if (open.peak !== streams)
    session.voids.push(`${target.name}: ${open.peak} streams were open at once, not ${streams}`)
  return result
}

/** Each case runs in a process of its own, so that the heap of one case does not hide the growth of the next. */
async function oneCase(session, role, counter, run) {
  const start = role === 'gateway' ? () => session.startGateway() : () => session.startYardstick()
  const target = { ...(await start()), expected: session[role].expected }
  try {
    await warmUp(target)
    const { result, figures } = await whileSampling(target, () => session.slot(target, counter, () => run(target)))
    return { ...figures, driverShare: result.driver }
  } finally {
    await target.service.stop()
  }
}

/** Growth of resident memory: many open streams, a long answer read slowly and fast, an upload. */
export async function measureMemory(session, plan) {
  const { speechBytes, slowBytesPerSecond, openStreams } = plan.memory
  const cases = {
    openStreams: ['stream', (target) => openStreamsRun(session, target, openStreams)],
    speechSlow: ['speech', (target) => speechRun(target, { bytes: speechBytes, bytesPerSecond: slowBytesPerSecond })],
    speechFast: ['speech', (target) => speechRun(target, { bytes: speechBytes })],
    upload: ['upload', uploadRun],
  }
  const results = { plan: plan.memory }
  for (const name of plan.memory.cases) {
    results[name] = {}
    for (const role of ['gateway', 'yardstick']) results[name][role] = await oneCase(session, role, ...cases[name])
  }
  return results
}
