import type { Channel } from './channel.js'
import type { ChannelHealth } from './channel-health.js'

/** The draw is overruled where another channel of the same priority would answer in less than half the time. */
const CLEARLY_SLOWER = 2

type Health = Pick<ChannelHealth, 'stateOf' | 'openUntilMs' | 'expectedWaitMs'>

/**
 * The channels that may be tried, best first: lower priority first, and within one priority a draw by weight, unless the
 * channel drawn is clearly slower than the next. Those whose breaker is open are left out while there are others; when
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
  const [first, second, ...others] = order
  if (first === undefined || second?.priority !== first.priority) return order
  const evenWeight = (first.weight + second.weight) / 2
  const firstMs = health.expectedWaitMs(first.id, first.weight / evenWeight)
  const secondMs = health.expectedWaitMs(second.id, second.weight / evenWeight)
  if (firstMs === undefined || secondMs === undefined || firstMs <= CLEARLY_SLOWER * secondMs) return order
  return [second, first, ...others]
}

const soonestFirst = (channels: readonly Channel[], health: Health): readonly Channel[] =>
  [...channels].sort((a, b) => health.openUntilMs(a.id) - health.openUntilMs(b.id) || a.priority - b.priority)
