import { closedLoop } from '../driver/closed-loop.mjs'
import { SCENARIOS, wireBytes } from '../scenarios.mjs'
import { median } from '../statistics.mjs'

/** `name`: under which the target's probe keeps the length of the answer; `nextCall` of a scenario: what is sent, where that changes. */
export function slot(session, target, name, durationMs, scenario = SCENARIOS[name]) {
  const { request, nextCall, counter, concurrency, limit } = scenario
  const load = {
    port: target.port,
    request: wireBytes(request, target),
    expectedBytes: target.expected[name],
    nextCall,
    concurrency,
    durationMs,
    limit,
    mayFail: target.isPeer,
  }
  return session.slot(target, counter, () => closedLoop(load))
}

/** So many slots in a row that cost the same within this share show that the compiler has done its work. */
const SETTLED_SLOTS = 3
const SETTLED_SHARE = 0.05

/**
 * Runs slots until their cost has settled, for `limitMs` at most: V8 compiles the path of a stream for some thousand streams.
 * @returns {Promise<boolean>} whether it has settled
 */
export async function warmUp(session, target, name, { warmUpSlotMs, warmUpLimitMs }, scenario = SCENARIOS[name]) {
  const costs = []
  const endMs = performance.now() + warmUpLimitMs
  while (performance.now() < endMs) {
    const { targetUs, completed } = await slot(session, target, name, warmUpSlotMs, scenario)
    costs.push(targetUs / completed)
    const last = costs.slice(-SETTLED_SLOTS)
    if (last.length === SETTLED_SLOTS && completed > 0 && Math.max(...last) <= Math.min(...last) * (1 + SETTLED_SHARE))
      return true
  }
  return false
}

/** One slot of each target, in rotating order so that a drift of the machine hits all alike: its µs per request, by role. */
async function round(session, targets, name, index, slotMs) {
  const roles = Object.keys(targets)
  const slots = {}
  for (let step = 0; step < roles.length; step++) {
    const role = roles[(index + step) % roles.length]
    slots[role] = await slot(session, targets[role], name, slotMs)
  }
  const us = Object.fromEntries(roles.map((role) => [role, slots[role].targetUs / slots[role].completed]))
  return { us, slots }
}

/** The gateway against another role, in the same rounds; without figures where the other has answered nothing in one of them. */
function comparison(rounds, role, target) {
  const failed = rounds.reduce((sum, { slots }) => sum + slots[role].failed, 0)
  if (rounds.some(({ slots }) => slots[role].completed === 0)) return { failed, ratio: undefined, met: undefined }
  const ratios = rounds.map(({ us }) => us.gateway / us[role])
  const ratio = median(ratios)
  return {
    failed,
    us: median(rounds.map(({ us }) => us[role])),
    ratio,
    lowestRatio: Math.min(...ratios),
    highestRatio: Math.max(...ratios),
    target,
    met: target === undefined ? undefined : ratio <= target,
  }
}

function summary(session, name, rounds, settled) {
  const { title, target, peerTargets, chunks, megabytes } = SCENARIOS[name]
  const slots = rounds.flatMap((one) => Object.values(one.slots))
  const gatewayUs = median(rounds.map(({ us }) => us.gateway))
  const { us: yardstickUs, ...yardstick } = comparison(rounds, 'yardstick', target)
  const per = chunks ?? megabytes
  const peers = Object.keys(session.peers).map((role) => [role, comparison(rounds, role, peerTargets?.[role])])
  return {
    title,
    gatewayUs,
    yardstickUs,
    ...(per && { per: chunks ? 'chunk' : 'MB', gatewayUsPer: gatewayUs / per, yardstickUsPer: yardstickUs / per }),
    ...yardstick,
    peers: Object.fromEntries(peers),
    settled,
    driverShare: Math.max(...slots.map((one) => one.driver)),
    upstreamShare: Math.max(...slots.map((one) => one.upstream)),
    rounds: rounds.map(({ us, slots: { gateway, yardstick: other } }) => ({
      us,
      gatewayRequests: gateway.completed,
      yardstickRequests: other.completed,
    })),
  }
}

/** CPU time of the whole process per completed request, of the gateway and all yardsticks in alternating slots. */
export async function measureCpu(session, plan) {
  const targets = { gateway: session.gateway, yardstick: session.yardstick, ...session.peers }
  const results = {}
  for (const name of Object.keys(SCENARIOS)) {
    const { rounds: count, slotMs, ...warmUpPlan } = name === 'upload' ? plan.upload : plan.cpu
    const settled = {}
    for (const role of Object.keys(targets)) settled[role] = await warmUp(session, targets[role], name, warmUpPlan)
    const rounds = []
    for (let index = 0; index < count; index++) rounds.push(await round(session, targets, name, index, slotMs))
    results[name] = summary(session, name, rounds, settled)
  }
  return results
}
