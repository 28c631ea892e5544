import type { Channel } from './channel.js'
import type { ChannelHealth } from './circuit-breaker.js'

/** The draw is overruled where another channel of the same priority would answer in less than half the time. */
const CLEARLY_SLOWER = 2

type Health = Pick<ChannelHealth, 'stateOf' | 'openUntilMs' | 'expectedWaitMs' | 'leastWaitMs'>

/**
 * The channels that may be tried, best first: lower priority first, and within one priority a draw by weight, unless the
 * channel drawn is clearly slower than another of them. Those whose breaker is open are left out while there are others; when
 * there are none, the one that opens soonest is tried first: it may work. `random` yields numbers in [0, 1).
 */
export function channelOrder(
  channels: readonly Channel[],
  health: Health,
  random: () => number = Math.random,
): readonly Channel[] {
  if (channels.length < 2) return channels
  const usable = channels.filter(({ id }) => health.stateOf(id) !== 'open')
  if (usable.length === 0) return soonestFirst(channels, health)
  return withoutSlowLead(drawn(usable, random), health)
}

/** Every channel, those that are spared last: for what only one of them can know. */
export function everyChannel(channels: readonly Channel[], health: Health): readonly Channel[] {
  const order = channelOrder(channels, health)
  return [...order, ...channels.filter((channel) => !order.includes(channel))]
}

function drawn(channels: readonly Channel[], random: () => number): Channel[] {
  // Exponential draws by weight (Efraimidis and Spirakis): sorting by them is a draw without replacement.
  return channels
    .map((channel) => ({ channel, draw: -Math.log(1 - random()) / channel.weight }))
    .sort((a, b) => a.channel.priority - b.channel.priority || a.draw - b.draw)
    .map(({ channel }) => channel)
}

function withoutSlowLead(order: Channel[], health: Health): Channel[] {
  const [drawnFirst] = order
  // One call probes what has cooled down, however long others have been waiting there.
  if (drawnFirst === undefined || health.stateOf(drawnFirst.id) === 'half_open') return order
  let lead = drawnFirst
  for (const channel of order) {
    if (channel.priority !== lead.priority) break
    if (channel !== lead && isClearlySlower(lead, channel, health)) lead = channel
  }
  return lead === drawnFirst ? order : [lead, ...order.filter((channel) => channel !== lead)]
}

/**
 * Whether one is slower than another that is known; of the one it is enough to know that it keeps calls waiting. Each
 * is meant to carry what its weight says, and is not slower for that.
 */
function isClearlySlower(one: Channel, other: Channel, health: Health): boolean {
  const evenWeight = (one.weight + other.weight) / 2
  const otherMs = health.expectedWaitMs(other.id, other.weight / evenWeight)
  return otherMs !== undefined && health.leastWaitMs(one.id, one.weight / evenWeight) > CLEARLY_SLOWER * otherMs
}

const soonestFirst = (channels: readonly Channel[], health: Health): readonly Channel[] =>
  [...channels].sort((a, b) => health.openUntilMs(a.id) - health.openUntilMs(b.id) || a.priority - b.priority)
