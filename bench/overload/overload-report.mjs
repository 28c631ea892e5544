import { quantile } from '../statistics.mjs'
import { OVERLOAD_FACTOR, PROMPT_MS, UNREFUSED_SHARE } from './overload-run.mjs'

/** What must be true. */
const GOODPUT_SHARE = 0.8
const RECOVERY_SECONDS = 10

/** The driver or the upstream may be what was measured when they had no more to give, or could not send on time. */
const DRIVER_SHARE = 0.9
const SENT_LATE_MS = 250

/** How far saturation before and after the overload may differ; beyond that the machine was not the same. */
const DRIFT_SHARE = 0.15

const number = (value, digits = 0) => (Number.isFinite(value) ? value.toFixed(digits) : '–')
const share = (value) => `${number(value * 100)} %`
const quantiles = (values) => `p50 ${number(quantile(values, 0.5), 1)} ms, p99 ${number(quantile(values, 0.99), 1)} ms`

/** One load as lines of text. */
function loadLines({ name, ratePerSecond, goodPerSecond, tally, connections, driverShare, gatewayShare }) {
  const counts = ['good', 'late', 'refused', 'badRefusal', 'otherStatus', 'broken', 'unanswered', 'unsent']
    .map((outcome) => [outcome, tally.total(outcome)])
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => `${count} ${WORDS[outcome]}`)
  return [
    `${name}: ${number(ratePerSecond)} requests a second offered, ${number(goodPerSecond)} served within ${PROMPT_MS} ms`,
    `  ${counts.join(', ')}; of ${tally.all}`,
    `  served: ${quantiles(tally.latenciesMs)}; refused: ${quantiles(tally.refusedMs)}`,
    `  ${connections} connections; CPU: gateway ${share(gatewayShare)}, driver ${share(driverShare)} of a core; sent late: p99 ${number(quantile(tally.sentLateMs, 0.99), 1)} ms`,
  ]
}

const WORDS = {
  good: 'served in time',
  late: 'served late',
  refused: 'refused with 503 and Retry-After',
  badRefusal: 'refused without Retry-After or without a reason',
  otherStatus: 'answered otherwise',
  broken: 'connections broken',
  unanswered: 'never answered',
  unsent: 'not sent (no connection left)',
}

/** Seconds after the load has fallen until everything is served as before; undefined when that did not happen. */
function recoverySeconds({ tally }, calm) {
  const usualMs = quantile(calm.tally.latenciesMs, 0.99)
  const limitMs = Math.max(2 * usualMs, 50)
  const isNormal = (second) => {
    const served = second.good
    const others =
      second.late + second.refused + second.badRefusal + second.otherStatus + second.broken + second.unanswered
    return served > 0 && others === 0 && quantile(second.latenciesMs, 0.99) <= limitMs
  }
  const seconds = tally.seconds
  let last = seconds.length
  while (last > 0 && isNormal(seconds[last - 1])) last--
  return last === seconds.length ? undefined : last
}

/** @returns {{ text: string, code: 0 | 1 | 2 }} */
export function overloadReport({ machine, mixName, closed, calm, before, below, overload, recovery, after }) {
  const saturation = (before.goodPerSecond + after.goodPerSecond) / 2
  const goodput = overload.goodPerSecond / saturation
  const dishonest = ['badRefusal', 'otherStatus', 'broken', 'unanswered'].reduce(
    (sum, name) => sum + overload.tally.total(name),
    0,
  )
  const recovered = recoverySeconds(recovery, calm)
  const refusedBelow = below.tally.total('refused')
  const promises = [
    [
      goodput >= GOODPUT_SHARE,
      `goodput under overload ${share(goodput)} of saturation (at least ${share(GOODPUT_SHARE)})`,
    ],
    [refusedBelow === 0, `${refusedBelow} requests refused at ${share(UNREFUSED_SHARE)} of saturation (none)`],
    [dishonest === 0, `${dishonest} requests neither served nor refused honestly (none)`],
    [
      recovered !== undefined && recovered <= RECOVERY_SECONDS,
      `recovered after ${recovered ?? '–'} s (at most ${RECOVERY_SECONDS})`,
    ],
  ]
  const loads = [calm, before, below, overload, recovery, after]
  const voids = [...loads.flatMap(driverFaults), ...driftFaults(before, after)]
  const text = [
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; the gateway ${machine.pinned ? 'has a core of its own, driver and upstream share the rest' : 'shares all cores with driver and upstream'}`,
    `load: ${mixName}`,
    `closed loop, 64 callers: ${number(closed.ratePerSecond)} requests a second, ${number(closed.cpuMicroseconds, 1)} µs of CPU each`,
    ...loads.flatMap(loadLines),
    '',
    `saturation: ${number(before.goodPerSecond)} requests a second before, ${number(after.goodPerSecond)} after, ${number(saturation)} on average (${share(saturation / closed.ratePerSecond)} of the closed loop); overload: ${OVERLOAD_FACTOR} times the first, ${share(overload.goodPerSecond / closed.ratePerSecond)} of the closed loop`,
    ...promises.map(([kept, what]) => `${kept ? 'KEPT  ' : 'MISSED'} ${what}`),
    ...voids.map((what) => `VOID   ${what}`),
  ].join('\n')
  if (voids.length > 0) return { text, code: 2 }
  return { text, code: promises.every(([kept]) => kept) ? 0 : 1 }
}

/** What makes a load no measurement of the gateway. */
function driverFaults({ name, driverShare, tally }) {
  const lateMs = quantile(tally.sentLateMs, 0.99)
  return [
    ...(driverShare > DRIVER_SHARE ? [`${name}: the driver took ${share(driverShare)} of a core`] : []),
    ...(lateMs > SENT_LATE_MS
      ? [`${name}: one request in a hundred was sent more than ${number(lateMs)} ms late`]
      : []),
    ...(tally.total('unsent') > 0 ? [`${name}: ${tally.total('unsent')} requests found no connection`] : []),
  ]
}

/** A machine that became faster or slower meanwhile, or a gateway that did: the overload cannot be compared with either. */
function driftFaults({ goodPerSecond: before }, { goodPerSecond: after }) {
  const drift = Math.abs(after - before) / Math.max(after, before)
  return drift > DRIFT_SHARE ? [`saturation after the overload differs by ${share(drift)} from before`] : []
}
