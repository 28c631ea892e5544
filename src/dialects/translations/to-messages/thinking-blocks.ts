import { isRecord } from '../../../core/validation-rules.js'
import type { ModelFacts } from '../../model-facts.js'
import { parsedOr } from '../members.js'
import type { Block, PlacedBlock } from './blocks.js'

/** Verbatim, also an empty text with its signature; undefined for what is no such block, or not a whole one. */
export function thinkingBlock(value: unknown): Block | undefined {
  if (!isRecord(value)) return undefined
  const { type, thinking, signature, data } = value
  if (type === 'redacted_thinking') return typeof data === 'string' ? { type, data } : undefined
  if (type !== 'thinking' || typeof thinking !== 'string') return undefined
  return typeof signature === 'string' && signature !== '' ? { type, thinking, signature } : undefined
}

const THINKING_TYPES: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking'])

export const isThinkingType = (type: unknown): boolean => THINKING_TYPES.has(type)

interface Turn {
  readonly role: string
  readonly blocks: readonly PlacedBlock[]
}

/**
 * Whether a model with a budget cannot think, as its turn no longer begins with what it thought. A turn is the whole tool loop since the
 * user spoke: its later steps may have no thoughts. A user who breaks in on it ends it, and any thought of it is enough. Models that
 * decide themselves need not think in any step, so that nothing of theirs counts as lost.
 */
export function isThoughtLost(turns: readonly Turn[], { thinking }: ModelFacts): boolean {
  const last = turns.findLastIndex(isAssistant)
  if (thinking !== 'budget' || last === -1) return false
  const said = turns.slice(0, last).findLastIndex(isSaid)
  const steps = turns.slice(said + 1, last + 1).filter(isAssistant)
  const isEnded = turns.slice(last).some(isSaid)
  return (isEnded ? steps : steps.slice(0, 1)).every(callsWithoutThought)
}

const isSaid = ({ role, blocks }: Turn): boolean => role === 'user' && !blocks.every(isToolResult)
const isAssistant = ({ role }: Turn): boolean => role === 'assistant'
const isToolResult = ({ block }: PlacedBlock): boolean => block.type === 'tool_result'

function callsWithoutThought({ blocks }: Turn): boolean {
  const firstCall = blocks.findIndex(({ block }) => block.type === 'tool_use')
  return firstCall !== -1 && !blocks.slice(0, firstCall).some(({ block }) => isThinkingType(block.type))
}

/** JSON text of thinking blocks, which a client keeps sealed. */
export const blocksText = (blocks: readonly Block[]): string => JSON.stringify(blocks)

/** undefined for what is no list of such blocks, as another upstream's thoughts. */
export function blocksIn(text: string | undefined): readonly Block[] | undefined {
  const value = parsedOr(text)
  if (!Array.isArray(value)) return undefined
  const blocks = value.map(thinkingBlock)
  return blocks.every((block) => block !== undefined) ? blocks : undefined
}
