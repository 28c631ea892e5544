import { isRecord } from '../../../core/validation-rules.js'
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

/** Whether the assistant called tools since the user spoke, or in its last turn, and what it thought before is not known any more. */
export function isThoughtLost(turns: readonly Turn[]): boolean {
  const said = turns.findLastIndex(({ role, blocks }) => role === 'user' && !blocks.every(isToolResult))
  const last = turns.findLastIndex(isAssistant)
  return turns.slice(Math.max(0, Math.min(said, last))).some((turn) => isAssistant(turn) && callsWithoutThought(turn))
}

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
