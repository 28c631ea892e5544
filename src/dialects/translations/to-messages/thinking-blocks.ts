import { isRecord } from '../../../core/validation-rules.js'
import type { Thoughts } from '../../translator.js'
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

/** Whether a turn called tools, and what was thought before is not known any more. */
export const isThoughtLost = (turn: readonly PlacedBlock[] = []): boolean =>
  turn.some(({ block }) => block.type === 'tool_use') && !isThinkingType(turn[0]?.block.type)

/** JSON text of thinking blocks: what a client keeps sealed, and what is remembered before a call. */
export const blocksText = (blocks: readonly Block[]): string => JSON.stringify(blocks)

/** undefined for what is no list of such blocks, as another upstream's thoughts. */
export function blocksIn(text: string | undefined): readonly Block[] | undefined {
  const value = parsedOr(text)
  if (!Array.isArray(value)) return undefined
  const blocks = value.map(thinkingBlock)
  return blocks.every((block) => block !== undefined) ? blocks : undefined
}

/** Remembers what was thought before each call, for clients that do not send it back. */
export class ThoughtsBeforeCalls {
  private blocks: Block[] = []

  constructor(private readonly thoughts: Thoughts | undefined) {}

  add(block: Block): void {
    this.blocks.push(block)
  }

  called(callId: string): void {
    if (this.blocks.length === 0) return
    this.thoughts?.remember(callId, blocksText(this.blocks))
    this.blocks = []
  }
}
