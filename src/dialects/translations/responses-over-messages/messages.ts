import {
  type AssistantTurn,
  type CallEntry,
  hasCalls,
  type Reasoning,
  type Result,
  splitInstructions,
  type Turn,
} from '../responses/conversation.js'
import type { ResponsesDraft } from '../responses/request-draft.js'
import { CallIds, inputOfArguments } from '../tool-forms.js'
import { type Block, contentAt, contentOf, type PlacedBlock, placeholderAt } from '../to-messages/blocks.js'
import { recalledThoughts, withThoughts } from '../to-messages/remembered-thoughts.js'
import { blocksIn, isThinkingType, isThoughtLost } from '../to-messages/thinking-blocks.js'
import { BlockMaker } from './blocks.js'

type Role = 'user' | 'assistant' | 'system'

interface Message {
  readonly role: Role
  readonly path: string
  readonly blocks: PlacedBlock[]
}

/** What a strict caller can do, by where a message of the user is missing. */
const PAD_HINTS = {
  unshift: 'Begin the input with a message of the user',
  push: 'End the input with a message of the user',
} as const

/** The conversation as messages upstreams take it: a user begins and ends it, and those that speak take turns. */
export class MessagesConversation {
  private readonly instructions: PlacedBlock[] = []
  private readonly messages: Message[] = []
  private readonly maker: BlockMaker
  private readonly callIds = new CallIds()
  /** Results follow their calls in the same order. */
  private readonly resultIds = new CallIds()

  constructor(
    turns: readonly Turn[],
    private readonly draft: ResponsesDraft,
  ) {
    this.maker = new BlockMaker(draft.verdicts)
    const isTakenLater = draft.facts.systemRole === 'system'
    const { instructions, rest } = splitInstructions(
      isTakenLater ? turns : this.endedByUser(turns),
      !isTakenLater,
      draft,
    )
    for (const { parts } of instructions) this.instructions.push(...this.maker.blocksOf(parts))
    for (const turn of rest) this.add(turn)
    this.maker.applyMarks()
    this.complete()
  }

  /** Whether the model has a budget, and what its turn began with is not known any more. */
  get isThoughtLost(): boolean {
    return isThoughtLost(this.messages, this.draft.facts)
  }

  /** Members of the upstream's request; sets their paths. */
  fields(): { readonly system?: string | readonly Block[]; readonly messages: readonly object[] } {
    const { draft, instructions } = this
    const { paths } = draft
    const messages = this.messages.map(({ role, path, blocks }, index) => {
      paths.set(`messages.${index}`, path)
      return { role, content: contentAt(`messages.${index}.content`, blocks, paths) }
    })
    const system = instructions.length === 0 ? {} : { system: contentAt('system', instructions, paths) }
    return { ...system, messages }
  }

  /** Instructions at the end are what is to be answered. */
  private endedByUser(turns: readonly Turn[]): readonly Turn[] {
    const last = turns.at(-1)
    if (last?.kind !== 'instructions' || turns.every(({ kind }) => kind === 'instructions')) return turns
    this.draft.verdicts.approximate(last.path)
    return [...turns.slice(0, -1), { ...last, kind: 'user' }]
  }

  private add(turn: Turn): void {
    if (turn.kind === 'assistant') this.push('assistant', turn.entries[0]?.path ?? 'input', this.assistantBlocks(turn))
    else if (turn.kind === 'results') {
      const blocks = turn.results.map((result) => this.resultBlock(result))
      this.push('user', turn.results[0]?.path ?? 'input', blocks)
    } else {
      this.push(turn.kind === 'user' ? 'user' : 'system', turn.path, this.maker.blocksOf(turn.parts))
    }
  }

  /** Messages of one role are one: results of tools and what a user says behind them must stand together. */
  private push(role: Role, path: string, blocks: readonly PlacedBlock[]): void {
    if (blocks.length === 0) return
    const last = this.messages.at(-1)
    if (last?.role === role) last.blocks.push(...blocks)
    else this.messages.push({ role, path, blocks: [...blocks] })
  }

  /** In the order in which the model made them; thoughts alone are no turn. */
  private assistantBlocks(turn: AssistantTurn): readonly PlacedBlock[] {
    const blocks = turn.entries.flatMap((entry): readonly PlacedBlock[] => {
      if (entry.kind === 'reasoning') return this.thoughtBlocks(entry)
      return entry.kind === 'call' ? [this.callBlock(entry)] : this.maker.blocksOf(entry.parts)
    })
    if (blocks.every(({ block }) => isThinkingType(block.type))) return []
    const isRemembered = hasCalls(turn) && !blocks.some(({ block }) => isThinkingType(block.type))
    return isRemembered ? this.withRemembered(turn, blocks) : blocks
  }

  private thoughtBlocks({ path, sealed }: Reasoning): readonly PlacedBlock[] {
    const { target, verdicts } = this.draft
    const opened = sealed === undefined ? undefined : blocksIn(target.seals.open(sealed))
    if (opened === undefined) verdicts.drop(sealed === undefined ? path : `${path}.encrypted_content`)
    return (opened ?? []).map((block) => ({ block, path }))
  }

  /** For clients that do not send back what they cannot read. */
  private withRemembered(turn: AssistantTurn, blocks: readonly PlacedBlock[]): readonly PlacedBlock[] {
    const { thoughts } = this.draft.target
    const calls = turn.entries.filter((entry) => entry.kind === 'call')
    return (
      withThoughts(
        blocks,
        calls.map(({ id, path }) => recalledThoughts(thoughts, id, path)),
      ) ?? blocks
    )
  }

  private callBlock({ path, id, name, text, isCustom }: CallEntry): PlacedBlock {
    const input = isCustom
      ? { input: text }
      : inputOfArguments(text, () => {
          this.draft.verdicts.approximate(`${path}.arguments`)
        })
    return { block: { type: 'tool_use', id: this.callIds.next(id), name, input }, path }
  }

  private resultBlock({ path, callId, parts }: Result): PlacedBlock {
    const result: Block = { type: 'tool_result', tool_use_id: this.resultIds.next(callId) }
    const blocks = this.maker.blocksOf(parts, result)
    if (blocks.length > 0) result['content'] = contentOf(blocks.map(({ block }) => block))
    return { block: result, path }
  }

  private complete(): void {
    const first = this.messages.find(({ role }) => role !== 'system')
    const last = this.messages.at(-1)
    if (first?.role !== 'user') this.pad(first?.path ?? 'input', 'unshift')
    // The beginning of the answer, if it is the last: callers of this dialect mean a turn that is over.
    if (last?.role === 'assistant') this.pad(last.path, 'push')
  }

  private pad(path: string, place: keyof typeof PAD_HINTS): void {
    this.draft.verdicts.approximate(path, PAD_HINTS[place])
    this.messages[place]({ role: 'user', path, blocks: [placeholderAt(path)] })
  }
}
