import { tokensOf } from '../../core/text-tokens.js'
import { isRecord } from '../../core/validation-rules.js'

/** What a message may say in words, whosever dialect of chat it is. */
const TEXTS = ['content', 'refusal', 'reasoning_content', 'reasoning'] as const

/** Counts a whole answer whose upstream does not say what it took; nothing is looked at before that is asked for. */
export class AnswerEstimate {
  constructor(private readonly body: Buffer) {}

  /** Tokens, roughly, of all choices: of their texts, tool calls and transcripts. 0 for what is no chat completion. */
  get count(): number {
    try {
      return messagesIn(JSON.parse(this.body.toString())).reduce((sum, message) => sum + tokensIn(message), 0)
    } catch {
      // Broken, or nested so deeply that it cannot be written again.
      return 0
    }
  }
}

function messagesIn(answer: unknown): readonly Record<string, unknown>[] {
  const choices = isRecord(answer) ? answer['choices'] : undefined
  if (!Array.isArray(choices)) return []
  return choices
    .map((choice: unknown) => (isRecord(choice) ? choice['message'] : undefined))
    .filter((message) => isRecord(message))
}

function tokensIn(message: Record<string, unknown>): number {
  const { tool_calls: calls, audio } = message
  const texts = [...TEXTS.map((name) => message[name]), isRecord(audio) ? audio['transcript'] : undefined]
  const words = texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? tokensOf(text) : 0), 0)
  return words + (calls == null ? 0 : tokensOf(JSON.stringify(calls)))
}
