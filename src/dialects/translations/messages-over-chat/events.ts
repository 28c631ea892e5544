import { tokensOf } from '../../../core/token-counter.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { EventTranslation, TranslationTarget } from '../../translator.js'
import type { Members } from '../members.js'
import { endOfChat } from '../stop-reasons.js'
import { messagesUsage } from '../usage.js'
import {
  type AnswerContext,
  emptyMessage,
  estimated,
  figuresIn,
  FUNCTION_CALL_ID,
  stopOf,
  textIn,
  thoughtsIn,
} from './answer.js'
import { BlockWriter } from './block-writer.js'

/** Of a refusal, which is told at the end. */
const MAXIMUM_REFUSAL_CHARACTERS = 256 * 1024

/** Members of a message's usage that its last delta has, too. */
const DELTA_USAGE: ReadonlySet<string> = new Set([
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  'output_tokens_details',
  'server_tool_use',
])

/** Translates the chunks of one chat stream to the events of a message. */
export class MessageEvents implements EventTranslation {
  private readonly blocks: BlockWriter
  private isStarted = false
  private finishReason: string | undefined
  private refusal = ''
  private usage: unknown
  /** Estimated, for an upstream that tells none. */
  private outputTokens = 0

  constructor(
    private readonly context: AnswerContext,
    memory: TranslationTarget['memory'],
  ) {
    this.blocks = new BlockWriter(context, memory)
  }

  event(chunk: Members): string {
    const start = this.isStarted ? '' : this.start(chunk)
    // The figures are totals: the last ones count.
    if (isRecord(chunk['usage'])) this.usage = chunk['usage']
    const choice = choiceIn(chunk)
    if (choice === undefined) return start
    const frames = start + this.content(isRecord(choice['delta']) ? choice['delta'] : {})
    const reason = textIn(choice, 'finish_reason')
    return reason === '' ? frames : frames + this.finish(reason)
  }

  end(): string {
    if (this.finishReason === undefined) {
      throw malformedResponse('The upstream ended its stream without a finish reason.')
    }
    const end = endOfChat(this.finishReason, this.blocks.hasCalls, this.refusal !== '')
    const delta = { ...stopOf(end, this.refusal), container: null }
    return this.blocks.close() + frameOf({ type: 'message_delta', delta, usage: this.totals() }) + STOP_FRAME
  }

  private start(chunk: Members): string {
    this.isStarted = true
    // The prompt's figure comes last in chat: a client gets it corrected at the end.
    const message = emptyMessage(chunk, this.context, estimated(this.context.inputTokens()))
    return frameOf({ type: 'message_start', message })
  }

  private content(delta: Members): string {
    let frames = ''
    const thoughts = thoughtsIn(delta)
    if (thoughts !== '') frames += this.text('thinking', thoughts)
    const text = textIn(delta, 'content')
    if (text !== '') frames += this.text('text', text)
    const refusal = textIn(delta, 'refusal')
    if (refusal !== '') this.refuse(refusal)
    const { tool_calls: calls, function_call: functionCall } = delta
    if (Array.isArray(calls)) for (const call of calls) frames += this.call(call)
    if (isRecord(functionCall)) frames += this.call({ index: 0, id: FUNCTION_CALL_ID, function: functionCall })
    return frames
  }

  private text(kind: 'text' | 'thinking', text: string): string {
    this.outputTokens += tokensOf(text)
    return this.blocks.text(kind, text)
  }

  private refuse(text: string): void {
    this.refusal += text
    if (this.refusal.length > MAXIMUM_REFUSAL_CHARACTERS)
      throw malformedResponse('The upstream refused at too great length.')
    this.blocks.dropWaitingCalls()
  }

  private call(call: unknown): string {
    if (!isRecord(call)) throw malformedResponse('The upstream sent a call that is no object.')
    const { index, function: called } = call
    const members = isRecord(called) ? called : {}
    const input = textIn(members, 'arguments')
    this.outputTokens += tokensOf(input)
    // Calls of a refused turn are not handed on.
    if (this.refusal !== '') return ''
    const toolIndex = typeof index === 'number' ? index : 0
    return this.blocks.call(toolIndex, textIn(call, 'id'), textIn(members, 'name'), input)
  }

  private finish(reason: string): string {
    this.finishReason = reason
    if (endOfChat(reason, false, this.refusal !== '') === 'refused') this.blocks.dropWaitingCalls()
    return this.blocks.close()
  }

  private totals(): object {
    const figures = figuresIn(this.usage)
    const usage = messagesUsage(figures ?? { ...estimated(0), output: this.outputTokens })
    const totals = Object.fromEntries(Object.entries(usage).filter(([name]) => DELTA_USAGE.has(name)))
    // Those of the first event stand.
    return figures === undefined ? { ...totals, input_tokens: null } : totals
  }
}

/** The first choice; no others are asked for. */
function choiceIn({ choices }: Members): Members | undefined {
  if (choices === undefined || choices === null) return undefined
  if (!Array.isArray(choices)) throw malformedResponse('The upstream sent choices that are no list.')
  const choice = (choices as unknown[]).find((other) => !isRecord(other) || (other['index'] ?? 0) === 0)
  if (choice === undefined) return undefined
  if (!isRecord(choice)) throw malformedResponse('The upstream sent a choice that is no object.')
  return choice
}

const frameOf = (event: Members & { readonly type: string }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

const STOP_FRAME = frameOf({ type: 'message_stop' })
