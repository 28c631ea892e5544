import type { JsonTexts } from '../../../core/json-text.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { TranslationTarget } from '../../translator.js'
import type { Members } from '../members.js'
import type { ResponseEnvelope } from '../responses/envelope.js'
import type { ReasoningWishes } from '../responses/request-draft.js'
import { type AnswerEntry, wholeResponse } from '../responses/whole-response.js'
import { endOfMessage, explanationOf } from '../stop-reasons.js'
import { type Block, inputText, textIn } from '../to-messages/blocks.js'
import { customInput } from '../tool-forms.js'
import { ThoughtsBeforeCalls } from '../to-messages/remembered-thoughts.js'
import { blocksText, isThinkingType, thinkingBlock } from '../to-messages/thinking-blocks.js'
import { figuresOfMessages } from '../usage.js'

/** What an answer depends on beside itself. */
export interface AnswerContext {
  readonly envelope: ResponseEnvelope
  readonly wishes: Readonly<ReasoningWishes>
  readonly target: TranslationTarget
  /** Names of tools that take a text. */
  readonly customNames: ReadonlySet<string>
}

/** What a client keeps of thoughts, whatever of them it is shown; undefined where none is whole. */
export const sealedBlocks = (blocks: readonly Block[], { target }: AnswerContext): string | undefined =>
  blocks.length === 0 ? undefined : target.seals.seal(blocksText(blocks))

/** A message as a response; `texts` is the same with numbers as they came. Throws `upstream_failed`. */
export function responseOfMessage(answer: Members, texts: JsonTexts, context: AnswerContext): string {
  const { content, stop_reason: reason, stop_details: details, usage } = answer
  if (!Array.isArray(content)) throw malformedResponse('The upstream answered without content.')
  const end = endOfMessage(reason, context.target.unknownWords)
  const entries = new AnswerEntries(texts, context)
  content.forEach((block: unknown, index) => {
    if (!isRecord(block)) throw malformedResponse('The upstream answered with a block that is none.')
    entries.add(block, index)
  })
  if (end === 'refused') entries.addRefusal(explanationOf(details))
  return wholeResponse(context.envelope, {
    entries: entries.ended(),
    end,
    usage: figuresOfMessages(usage),
  })
}

/** Blocks as items: those of one kind that follow one another are one item, but for calls. */
class AnswerEntries {
  private readonly entries: AnswerEntry[] = []
  private readonly thoughts: ThoughtsBeforeCalls
  /** Reasoning behind the last item, to which blocks may be added: sealed once, when it is over. */
  private run: { readonly summaries: string[]; readonly blocks: Block[] } | undefined

  constructor(
    private readonly texts: JsonTexts,
    private readonly context: AnswerContext,
  ) {
    this.thoughts = new ThoughtsBeforeCalls(context.target.thoughts)
  }

  /** Blocks of tools that upstreams run are never asked for. */
  add(block: Members, index: number): void {
    const { type } = block
    if (isThinkingType(type)) this.addThoughts(block)
    else if (type === 'text') this.addText(textIn(block['text']))
    else if (type === 'tool_use') this.addCall(block, index)
  }

  addRefusal(refusal: string): void {
    this.message().push({ type: 'refusal', refusal })
  }

  /** All items, once every block has been added. */
  ended(): readonly AnswerEntry[] {
    this.endRun()
    return this.entries
  }

  private endRun(): void {
    if (this.run === undefined) return
    const { summaries, blocks } = this.run
    this.run = undefined
    this.entries.push({ kind: 'reasoning', summaries, sealed: sealedBlocks(blocks, this.context) })
  }

  private message(): Extract<AnswerEntry, { kind: 'message' }>['parts'] {
    this.endRun()
    const last = this.entries.at(-1)
    if (last?.kind === 'message') return last.parts
    const parts: Extract<AnswerEntry, { kind: 'message' }>['parts'] = []
    this.entries.push({ kind: 'message', parts })
    return parts
  }

  private addText(text: string): void {
    if (text === '') return
    this.thoughts.said(text)
    this.message().push({ type: 'output_text', text })
  }

  private addThoughts(block: Members): void {
    this.run ??= { summaries: [], blocks: [] }
    const { summaries, blocks } = this.run
    const thinking = textIn(block['thinking'])
    if (this.context.wishes.isSummaryWanted && thinking !== '') summaries.push(thinking)
    const whole = thinkingBlock(block)
    if (whole === undefined) return
    blocks.push(whole)
    this.thoughts.add(whole)
  }

  private addCall(block: Members, index: number): void {
    const { id, name } = block
    if (typeof id !== 'string' || typeof name !== 'string') throw malformedResponse('The upstream called no tool.')
    const input = inputText(block, index, this.texts)
    const isCustom = this.context.customNames.has(name)
    this.thoughts.called(id)
    this.endRun()
    const tool = { isCustom, name, callId: id }
    this.entries.push({ kind: 'call', tool, text: isCustom ? customInput(input) : input })
  }
}
