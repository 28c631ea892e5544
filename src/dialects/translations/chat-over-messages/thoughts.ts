import type { ModelFacts } from '../../model-facts.js'
import type { Thoughts } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { invalidShape, isAbsent, isEmpty, type Members } from '../members.js'
import { hasMark } from '../seals.js'
import type { Block, PlacedBlock } from '../to-messages/blocks.js'
import { recalledThoughts, withThoughts } from '../to-messages/remembered-thoughts.js'
import { EFFORTS, type ThinkingFields, withoutThinking, withThinking } from '../to-messages/thinking.js'
import { thinkingBlock } from '../to-messages/thinking-blocks.js'

/**
 * A turn with the blocks of thinking as the upstream made them, which it wants back unchanged. What is remembered wins over what the
 * caller hands back in part, and all of it first: the stream helper of the client's SDK keeps only the last of several.
 */
export function thoughtfulTurn(
  turn: readonly PlacedBlock[],
  { thinking_blocks: handedBack, reasoning_content: reasoning }: Members,
  messagePath: string,
  callIds: readonly string[],
  thoughts: Thoughts | undefined,
  verdicts: Verdicts,
): readonly PlacedBlock[] {
  const path = `${messagePath}.thinking_blocks`
  const recalled = callIds.map((id) => recalledThoughts(thoughts, id, path))
  const isRemembered = recalled.some(({ thoughts: blocks }) => blocks.length > 0)
  const placed = isRemembered ? withThoughts(turn, recalled) : undefined
  if (placed !== undefined) return placed
  // Unsigned, so that no upstream takes it back.
  if (isEmpty(handedBack) && !isEmpty(reasoning) && reasoning !== '') verdicts.drop(`${messagePath}.reasoning_content`)
  const first = handedBackBlocks(handedBack, path, verdicts)
  return [...first.map((block) => ({ block, path })), ...turn]
}

const NONE: readonly Block[] = []

/** Blocks that no upstream can have made are left out rather than refused: an agent would be stuck in the middle of its loop. */
function handedBackBlocks(value: unknown, path: string, verdicts: Verdicts): readonly Block[] {
  if (isAbsent(value)) return NONE
  if (!Array.isArray(value)) {
    verdicts.drop(path)
    return NONE
  }
  return value.flatMap((item: unknown, index) => {
    const block = thinkingBlock(item)
    if (block === undefined) verdicts.drop(`${path}[${index}]`)
    // The gateway's own signature: of a chat upstream's thoughts, which this upstream would refuse.
    return block === undefined || hasMark(block['signature']) ? [] : [block]
  })
}

/** What the rest of the request says about thinking. */
export interface ThinkingRequest {
  readonly facts: ModelFacts
  readonly maximumTokens: number
  /**
   * Upstreams do not let a model think that must call a tool, or go on with an assistant's message; nor one with a budget whose turn,
   * the tool loop since the user spoke, does not begin with what it thought.
   */
  readonly isAllowed: boolean
}

const EFFORT = 'reasoning_effort'

/** `thinking` and `output_config.effort` for a `reasoning_effort`. */
export function thinkingFields(
  effort: unknown,
  { facts, maximumTokens, isAllowed }: ThinkingRequest,
  verdicts: Verdicts,
): ThinkingFields {
  if (isAbsent(effort)) return {}
  if (effort === 'none') return withoutThinking(facts, EFFORT, verdicts)
  if (typeof effort !== 'string' || !EFFORTS.includes(effort)) {
    throw invalidShape(EFFORT, `one of none, ${EFFORTS.join(', ')}`)
  }
  if (facts.thinking === 'none') {
    verdicts.drop(EFFORT)
    return {}
  }
  // Newer models keep their thoughts to themselves unless asked.
  const display = facts.thinking === 'adaptive' ? { display: 'summarized' } : {}
  // Never a 400 in the middle of an agent's loop: the model goes on without thinking.
  if (!isAllowed) verdicts.approximate(EFFORT)
  return withThinking(effort, { facts, maximumTokens, isAllowed, display, effortPath: EFFORT }, verdicts)
}
