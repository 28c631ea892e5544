import { closedLoop } from '../driver/closed-loop.mjs'
import { SCENARIOS, wireBytes } from '../scenarios.mjs'
import { median } from '../statistics.mjs'

const STREAMS = 100
const CALLERS = 4

/** One start: until the first answer, memory before any request but probes, and what the first streams of the process cost. */
async function oneStart(session, role) {
  const startedAtMs = performance.now()
  const started = role === 'gateway' ? await session.startGateway() : await session.startYardstick()
  const target = { ...started, expected: session[role].expected }
  const load = (name) => ({
    port: target.port,
    request: wireBytes(SCENARIOS[name].request, target),
    expectedBytes: target.expected[name],
  })
  try {
    const residentBytes = target.service.residentBytes()
    const first = { ...load('chat'), concurrency: 1, durationMs: 5_000, limit: 1 }
    await session.slot(target, 'chat', () => closedLoop(first))
    const firstAnswerMs = performance.now() - startedAtMs
    const streams = { ...load('stream'), concurrency: CALLERS, durationMs: 10_000, limit: STREAMS }
    const { targetUs, completed } = await session.slot(target, 'stream', () => closedLoop(streams))
    return { firstAnswerMs, residentBytes, firstStreamsUs: targetUs / completed }
  } finally {
    await target.service.stop()
  }
}

/** What a fresh process costs; `cpu` has what a stream costs once the compiler has done its work. Medians of the starts. */
export async function measureStart(session, { start: { starts } }, cpu) {
  const settledUs = { gateway: cpu.stream.gatewayUs, yardstick: cpu.stream.yardstickUs }
  const results = { streams: STREAMS }
  for (const role of ['gateway', 'yardstick']) {
    const all = []
    for (let index = 0; index < starts; index++) all.push(await oneStart(session, role))
    const over = (name) => median(all.map((one) => one[name]))
    const firstStreamsUs = over('firstStreamsUs')
    results[role] = {
      firstAnswerMs: over('firstAnswerMs'),
      residentBytes: over('residentBytes'),
      firstStreamsUs,
      againstSettled: firstStreamsUs / settledUs[role],
    }
  }
  return results
}
