import type { ModelFacts } from '../model-facts.js'
import type { Verdicts } from '../verdicts.js'

/** From the least thinking to the most. */
const ORDER: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** Those that the dialect of messages has. */
export const MESSAGES_EFFORTS: NonNullable<ModelFacts['efforts']> = ['low', 'medium', 'high', 'xhigh', 'max']

/**
 * The effort that the model takes: the same, or the nearest one, the lower of two. A model that is asked to think is not sent `none`,
 * unless it takes nothing else. What the order does not know is left to the upstream.
 */
function nearestEffort(asked: string, taken: readonly string[]): string {
  const rank = ORDER.indexOf(asked)
  if (rank < 0 || taken.includes(asked)) return asked
  const ranked = ORDER.filter((effort) => taken.includes(effort))
  const thinking = ranked.filter((effort) => effort !== 'none')
  const distance = (effort: string): number => Math.abs(ORDER.indexOf(effort) - rank)
  // Sorting keeps the order of equals.
  return (thinking.length > 0 ? thinking : ranked).toSorted((a, b) => distance(a) - distance(b))[0] ?? asked
}

/** Whether tools keep a chat model from thinking. Where it cannot be asked not to, its upstream refuses, and says what else to do. */
export const isKeptFromThinking = ({ thinking, thinkingWithTools, efforts }: ModelFacts, hasTools: boolean): boolean =>
  hasTools && thinking === 'adaptive' && !thinkingWithTools && (efforts?.includes('none') ?? true)

/** The efforts that a chat model takes; absent = all. */
export const effortsOf = (facts: ModelFacts, hasTools: boolean): ModelFacts['efforts'] =>
  isKeptFromThinking(facts, hasTools) ? ['none'] : facts.efforts

/** The effort as the model takes it, approximated where that is another one. */
export function effortTaken(
  asked: string,
  path: string,
  efforts: ModelFacts['efforts'],
  verdicts: Pick<Verdicts, 'approximate'>,
): string {
  const taken = efforts === undefined ? asked : nearestEffort(asked, efforts)
  if (taken !== asked) verdicts.approximate(path, wayOutOf(path, taken))
  return taken
}

/** undefined = the general one. */
function wayOutOf(path: string, taken: string): string | undefined {
  // A budget or a kind of thinking has no effort to be sent in its place.
  if (!path.endsWith('effort')) return undefined
  const isOfDialect = path !== 'output_config.effort' || MESSAGES_EFFORTS.some((effort) => effort === taken)
  if (isOfDialect) return `Send ${path}: ${taken}`
  return taken === 'none' ? 'Send thinking: {type: disabled} instead' : undefined
}
