import type { JsonTexts } from '../../../core/json-text.js'
import { nowSeconds } from '../../../core/time.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { Thoughts, UnknownWords } from '../../translator.js'
import { isPlainEnd } from '../cut-calls.js'
import type { Members } from '../members.js'
import { type AnswerEnd, CHAT_FINISH, endOfMessage, explanationOf } from '../stop-reasons.js'
import { type Block, inputText, textIn } from '../to-messages/blocks.js'
import { customInput } from '../tool-forms.js'
import { ThoughtsBeforeCalls } from '../to-messages/remembered-thoughts.js'
import { thinkingBlock } from '../to-messages/thinking-blocks.js'
import { chatUsage, figuresOfMessages } from '../usage.js'
import type { ChatTools } from './tools.js'

/** What an answer is translated with. */
export interface AnswerTerms {
  /** The caller's name of the model. */
  readonly model: string
  readonly tools: Pick<ChatTools, 'customNames' | 'isLegacy'>
  readonly thoughts: Thoughts | undefined
  readonly unknownWords: UnknownWords | undefined
}

/** A whole message as JSON text of a chat completion. */
export function chatCompletion(answer: Members, texts: JsonTexts, terms: AnswerTerms): string {
  const { id, content, stop_details: details, usage } = answer
  if (typeof id !== 'string' || !Array.isArray(content)) throw malformedResponse('The upstream sent no message.')
  const end = endOfMessage(answer['stop_reason'], terms.unknownWords)
  const parts = new MessageParts(terms)
  content.forEach((block: unknown, index) => {
    if (!isRecord(block)) throw malformedResponse('The upstream answered with a block that is none.')
    parts.add(block, () => inputText(block, index, texts))
  })
  const message = parts.message(end, details)
  const figures = figuresOfMessages(usage)
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created: nowSeconds(),
    model: terms.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(end, parts.hasCalls, terms) }],
    ...(figures === undefined ? {} : { usage: chatUsage(figures) }),
  })
}

/** Clients look here for calls, which some upstreams end with another word. The old form has a word of its own. */
export function finishReason(end: AnswerEnd, hasCalls: boolean, { tools }: Pick<AnswerTerms, 'tools'>): string {
  if (!isPlainEnd(end)) return CHAT_FINISH[end]
  if (!hasCalls) return CHAT_FINISH.ended
  return tools.isLegacy ? 'function_call' : CHAT_FINISH.called
}

/** Collects what the blocks of a whole answer are in a chat message. */
class MessageParts {
  private text = ''
  private reasoning = ''
  private readonly thinkingBlocks: Block[] = []
  private readonly calls: Members[] = []
  private readonly remembered: ThoughtsBeforeCalls

  constructor(private readonly terms: AnswerTerms) {
    this.remembered = new ThoughtsBeforeCalls(terms.thoughts)
  }

  get hasCalls(): boolean {
    return this.calls.length > 0
  }

  /** Blocks of other types mean nothing to the caller. */
  add(block: Members, inputText: () => string): void {
    const { type, text, thinking } = block
    if (type === 'text') this.said(textIn(text))
    else if (type === 'tool_use') this.call(block, inputText())
    else if (type === 'thinking') this.reasoning += textIn(thinking)
    const thought = thinkingBlock(block)
    if (thought === undefined) return
    this.thinkingBlocks.push(thought)
    this.remembered.add(thought)
  }

  private said(text: string): void {
    this.text += text
    this.remembered.said(text)
  }

  private call({ id, name }: Members, inputText: string): void {
    if (typeof id !== 'string' || typeof name !== 'string') throw malformedResponse('The upstream called no tool.')
    this.remembered.called(id)
    if (this.terms.tools.isLegacy && this.calls.length > 0) throw secondCall()
    const isCustom = this.terms.tools.customNames.has(name)
    this.calls.push(
      isCustom
        ? { id, type: 'custom', custom: { name, input: customInput(inputText) } }
        : { id, type: 'function', function: { name, arguments: inputText } },
    )
  }

  message(end: AnswerEnd, details: unknown): Members {
    const isRefused = end === 'refused'
    // Calls of a refused turn must not be run.
    const calls = isRefused ? [] : this.calls
    const isTextless = this.text === '' && (isRefused || calls.length > 0)
    return {
      role: 'assistant',
      content: isTextless ? null : this.text,
      refusal: isRefused ? explanationOf(details) : null,
      ...(this.reasoning === '' ? {} : { reasoning_content: this.reasoning }),
      ...(this.thinkingBlocks.length === 0 ? {} : { thinking_blocks: this.thinkingBlocks }),
      ...this.callFields(calls),
    }
  }

  private callFields(calls: readonly Members[]): Members {
    if (calls.length === 0) return {}
    return this.terms.tools.isLegacy ? { function_call: calls[0]?.['function'] } : { tool_calls: calls }
  }
}

/** The upstream was asked for one alone: a message of the old form has no place for more. */
export const secondCall = (): Error => malformedResponse('The upstream called two tools where the request allows one.')
