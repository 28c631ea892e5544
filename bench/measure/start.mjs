import { closedLoop } from '../driver/closed-loop.mjs'
import { exchangeOnce } from '../driver/connection.mjs'
import { SCENARIOS, wireBytes } from '../scenarios.mjs'
import { median } from '../statistics.mjs'

const STREAMS = 100

/** Streams of as many callers as those that have settled. */
async function streamsUs(session, target, limit) {
  const { request, concurrency } = SCENARIOS.stream
  const load = { port: target.port, request: wireBytes(request, target), expectedBytes: target.expected.stream }
  const run = () => closedLoop({ ...load, concurrency, durationMs: 20_000, limit })
  const { targetUs, completed } = await session.slot(target, 'stream', run)
  return targetUs / completed
}

/** One start: until the first answer, memory before any request but probes, and what the first streams of the process cost. */
async function oneStart(session, role) {
  const startedAtMs = performance.now()
  const started = role === 'gateway' ? await session.startGateway() : await session.startYardstick()
  const target = { ...started, expected: session[role].expected }
  try {
    await exchangeOnce(target.port, wireBytes(SCENARIOS.chat.request, target))
    const firstAnswerMs = performance.now() - startedAtMs
    const residentBytes = target.service.residentBytes()
    return { firstAnswerMs, residentBytes, firstStreamsUs: await streamsUs(session, target, STREAMS) }
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
