import type { Channel } from './channel.js'

/**
 * The order in which channels are tried: unmarked before marked, lower priority first, and within one priority a draw
 * by weight. `random` yields numbers in [0, 1).
 */
export function channelOrder(
  channels: readonly Channel[],
  isMarked: (channel: Channel) => boolean,
  random: () => number = Math.random,
): readonly Channel[] {
  if (channels.length < 2) return channels
  // Exponential draws by weight (Efraimidis and Spirakis): sorting by them is a draw without replacement.
  return channels
    .map((channel) => ({ channel, marked: isMarked(channel), draw: -Math.log(1 - random()) / channel.weight }))
    .sort((a, b) => Number(a.marked) - Number(b.marked) || a.channel.priority - b.channel.priority || a.draw - b.draw)
    .map(({ channel }) => channel)
}
