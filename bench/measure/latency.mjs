import { openLoop } from '../driver/open-loop.mjs'
import { pacedStream, SCENARIOS, wireBytes } from '../scenarios.mjs'
import { median, quantile } from '../statistics.mjs'
import { closingFrames, contentFrame } from '../wire.mjs'

const ROLES = ['direct', 'yardstick', 'gateway']
const STAMP_MARK = '"obfuscation":"t'
const STAMP_DIGITS = 16

/** Length of a paced stream: its stamps have a fixed width. */
export function pacedBytes(frames) {
  const stamp = 't'.padEnd(STAMP_DIGITS + 1, '0')
  let bytes = closingFrames(true).length
  for (let index = 0; index < frames; index++) bytes += contentFrame(index, frames, true, stamp).length
  return bytes
}

/** Pushes, for each frame in the bytes, the milliseconds since the upstream stamped it (both read the same clock). */
function readFrameAges(buffer, start, end, ages) {
  const text = buffer.latin1Slice(start, end)
  const now = Number(process.hrtime.bigint() / 1000n)
  for (let at = text.indexOf(STAMP_MARK); at !== -1; at = text.indexOf(STAMP_MARK, at + 1)) {
    const digits = text.slice(at + STAMP_MARK.length, at + STAMP_MARK.length + STAMP_DIGITS)
    if (digits.length === STAMP_DIGITS) ages.push((now - Number(digits)) / 1000)
  }
}

const quantiles = (values) => ({ p50: quantile(values, 0.5), p99: quantile(values, 0.99) })

/** All three paths one after the other, in rotating order. */
async function round(session, index, counter, loadFor, figuresOf) {
  const figures = {}
  for (let step = 0; step < ROLES.length; step++) {
    const role = ROLES[(index + step) % ROLES.length]
    const target = session[role]
    const slot = await session.slot(target, counter, () => openLoop({ port: target.port, ...loadFor(target) }))
    figures[role] = { sentLate: quantiles(slot.sentLateMs) }
    for (const [name, values] of Object.entries(figuresOf(slot))) figures[role][name] = quantiles(values)
  }
  return figures
}

/** Medians over the rounds: the figures as they are, and what the gateway adds to direct and to the yardstick. */
function summarise(rounds, names) {
  const over = (pick) => median(rounds.map(pick))
  return Object.fromEntries(
    names.map((name) => [
      name,
      Object.fromEntries(
        ['p50', 'p99'].map((level) => [
          level,
          {
            ...Object.fromEntries(ROLES.map((role) => [`${role}Ms`, over((one) => one[role][name][level])])),
            yardstickAddsMs: over((one) => one.yardstick[name][level] - one.direct[name][level]),
            gatewayAddsMs: over((one) => one.gateway[name][level] - one.direct[name][level]),
            overYardstickMs: over((one) => one.gateway[name][level] - one.yardstick[name][level]),
          },
        ]),
      ),
    ]),
  )
}

/** Time to the whole answer of a chat call at a fixed rate. */
async function measureChat(session, { rounds: count, durationMs, ratePerSecond }) {
  const loadFor = (target) => ({
    request: wireBytes(SCENARIOS.chat.request, target),
    expectedBytes: target.expected.chat,
    ratePerSecond,
    durationMs,
  })
  const rounds = []
  for (let index = 0; index < count; index++) {
    rounds.push(await round(session, index, 'chat', loadFor, (slot) => ({ answer: slot.totalMs })))
  }
  return { ratePerSecond, ...summarise(rounds, ['answer', 'sentLate']), rounds }
}

/** Time to the first byte of a paced stream, and the age of its frames when they arrive. */
async function measureStream(session, { rounds: count, durationMs, ratePerSecond, frames, paceMs }) {
  const request = pacedStream(frames, paceMs)
  const expectedBytes = pacedBytes(frames)
  const loadFor = (target) => ({
    request: wireBytes(request, target),
    expectedBytes,
    ratePerSecond,
    durationMs,
    readFrames: readFrameAges,
  })
  const figuresOf = (slot) => ({ firstByte: slot.firstByteMs, frameAge: slot.frames })
  const rounds = []
  for (let index = 0; index < count; index++) rounds.push(await round(session, index, 'stream', loadFor, figuresOf))
  return { ratePerSecond, frames, paceMs, ...summarise(rounds, ['firstByte', 'frameAge', 'sentLate']), rounds }
}

/** Latency under an open-loop rate far below saturation; direct, yardstick and gateway in the same minute. */
export async function measureLatency(session, plan) {
  return { chat: await measureChat(session, plan.latency), stream: await measureStream(session, plan.firstByte) }
}
