import type { Thoughts } from '../../translator.js'
import { parsedOr, recordOr } from '../members.js'
import { type Block, type PlacedBlock, textBlock } from './blocks.js'
import { thinkingBlock } from './thinking-blocks.js'

/** A thinking block, and how many characters of its turn's text stood before it: without white space, which may come back changed. */
interface Thought {
  readonly block: Block
  readonly textBefore: number
}

/** What was thought before one call, and the caller's field that it is put at. */
interface RecalledThoughts {
  readonly path: string
  readonly thoughts: readonly Thought[]
}

/** Remembers what was thought before each call, and where, for clients that do not send it back. */
export class ThoughtsBeforeCalls {
  private blocks: Block[] = []
  private textBefore = 0

  constructor(private readonly thoughts: Thoughts | undefined) {}

  said(text: string): void {
    if (this.thoughts !== undefined) this.textBefore += visibleLength(text)
  }

  add(block: Block): void {
    if (this.thoughts === undefined) return
    this.blocks.push(this.textBefore === 0 ? block : { ...block, textBefore: this.textBefore })
  }

  called(callId: string): void {
    if (this.blocks.length === 0) return
    this.thoughts?.remember(callId, JSON.stringify(this.blocks))
    this.blocks = []
  }
}

/** What is remembered of a call. */
export function recalledThoughts(thoughts: Thoughts | undefined, callId: string, path: string): RecalledThoughts {
  const blocks = parsedOr(thoughts?.recall(callId))
  return { path, thoughts: Array.isArray(blocks) ? blocks.flatMap(thoughtOf) : [] }
}

function thoughtOf(value: unknown): readonly Thought[] {
  const block = thinkingBlock(value)
  const { textBefore } = recordOr(value)
  return block === undefined ? [] : [{ block, textBefore: typeof textBefore === 'number' ? textBefore : 0 }]
}

/**
 * A turn with its thoughts where they stood, `recalled` being those of its calls in their order: upstreams want them back as they were.
 * undefined where less text has come back than stood before them.
 */
export function withThoughts(
  turn: readonly PlacedBlock[],
  recalled: readonly RecalledThoughts[],
): readonly PlacedBlock[] | undefined {
  const textBefore = visibleTextBeforeCalls(turn)
  const isTooShort = recalled.some(({ thoughts }, call) =>
    thoughts.some((thought) => thought.textBefore > (textBefore[call] ?? 0)),
  )
  // Known before a block is cut in two, which changes it in its place.
  return isTooShort ? undefined : placedThoughts(turn, recalled)
}

/** By the position of the call in its turn. */
function visibleTextBeforeCalls(turn: readonly PlacedBlock[]): readonly number[] {
  const lengths: number[] = []
  let length = 0
  for (const { block } of turn) {
    if (block.type === 'tool_use') lengths.push(length)
    length += visibleLength(textOf(block))
  }
  return lengths
}

function placedThoughts(turn: readonly PlacedBlock[], recalled: readonly RecalledThoughts[]): readonly PlacedBlock[] {
  const placed: PlacedBlock[] = []
  let call = 0
  let position = 0
  let textBefore = 0
  for (const next of turn) {
    const { path = '', thoughts = [] } = recalled[call] ?? {}
    const { block } = next
    const isCall = block.type === 'tool_use'
    const end = textBefore + visibleLength(textOf(block))
    for (let thought = thoughts[position]; thought !== undefined; thought = thoughts[position]) {
      if (!isCall && thought.textBefore >= end) break
      placed.push(...cutOff(next, thought.textBefore - textBefore), { block: thought.block, path })
      textBefore = Math.max(textBefore, thought.textBefore)
      position++
    }
    textBefore = end
    placed.push(next)
    if (!isCall) continue
    call++
    position = 0
  }
  return placed
}

const WHITE = /\s/
const ALL_WHITE = /\s+/g

const visibleLength = (text: string): number => text.replace(ALL_WHITE, '').length

const textOf = ({ type, text }: Block): string => (type === 'text' && typeof text === 'string' ? text : '')

/** The beginning of a text of so many visible characters as a block of its own; the rest stays, and what is marked at its end. */
function cutOff({ block, path }: PlacedBlock, length: number): readonly PlacedBlock[] {
  if (length <= 0) return []
  const text = textOf(block)
  let end = 0
  for (let seen = 0; end < text.length; end++) {
    if (WHITE.test(text.charAt(end))) continue
    if (seen === length) break
    seen++
  }
  block['text'] = text.slice(end)
  const beginning = textBlock(text.slice(0, end))
  return beginning === undefined ? [] : [{ block: beginning, path }]
}
