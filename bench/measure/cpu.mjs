import { closedLoop } from '../driver/closed-loop.mjs'
import { SCENARIOS, wireBytes } from '../scenarios.mjs'
import { median } from '../statistics.mjs'

/** `name`: under which the target's probe keeps the length of the answer. */
export function slot(session, target, name, durationMs, scenario = SCENARIOS[name]) {
  const { request, counter, concurrency, limit } = scenario
  const load = {
    port: target.port,
    request: wireBytes(request, target),
    expectedBytes: target.expected[name],
    concurrency,
    durationMs,
    limit,
  }
  return session.slot(target, counter, () => closedLoop(load))
}

/** One slot of each, the order swapped from pair to pair so that a drift of the machine hits both alike. */
async function pair(session, name, index, slotMs) {
  const order = index % 2 === 0 ? ['gateway', 'yardstick'] : ['yardstick', 'gateway']
  const slots = {}
  for (const role of order) slots[role] = await slot(session, session[role], name, slotMs)
  const gatewayUs = slots.gateway.targetUs / slots.gateway.completed
  const yardstickUs = slots.yardstick.targetUs / slots.yardstick.completed
  return { gatewayUs, yardstickUs, ratio: gatewayUs / yardstickUs, slots }
}

function summary(name, pairs) {
  const { title, target, chunks, megabytes } = SCENARIOS[name]
  const ratios = pairs.map((one) => one.ratio)
  const slots = pairs.flatMap((one) => Object.values(one.slots))
  const gatewayUs = median(pairs.map((one) => one.gatewayUs))
  const yardstickUs = median(pairs.map((one) => one.yardstickUs))
  const per = chunks ?? megabytes
  return {
    title,
    gatewayUs,
    yardstickUs,
    ...(per && { per: chunks ? 'chunk' : 'MB', gatewayUsPer: gatewayUs / per, yardstickUsPer: yardstickUs / per }),
    ratio: median(ratios),
    lowestRatio: Math.min(...ratios),
    highestRatio: Math.max(...ratios),
    target,
    met: target === undefined ? undefined : median(ratios) <= target,
    driverShare: Math.max(...slots.map((one) => one.driver)),
    upstreamShare: Math.max(...slots.map((one) => one.upstream)),
    pairs: pairs.map((one) => ({
      gatewayUs: one.gatewayUs,
      yardstickUs: one.yardstickUs,
      ratio: one.ratio,
      gatewayRequests: one.slots.gateway.completed,
      yardstickRequests: one.slots.yardstick.completed,
      gatewayWallMs: one.slots.gateway.wallMs,
      yardstickWallMs: one.slots.yardstick.wallMs,
    })),
  }
}

/** CPU time of the whole process per completed request, gateway and yardstick in alternating slots. */
export async function measureCpu(session, plan) {
  const results = {}
  for (const name of Object.keys(SCENARIOS)) {
    const { pairs: count, slotMs, warmUpMs } = name === 'upload' ? plan.upload : plan.cpu
    for (const role of ['gateway', 'yardstick']) await slot(session, session[role], name, warmUpMs)
    const pairs = []
    for (let index = 0; index < count; index++) pairs.push(await pair(session, name, index, slotMs))
    results[name] = summary(name, pairs)
  }
  return results
}
