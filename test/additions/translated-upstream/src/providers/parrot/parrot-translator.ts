import { GatewayError } from '../../core/errors.js'
import { JsonBody, type ModelFields } from '../../core/json-body.js'
import { isRecord } from '../../core/validation-rules.js'
import type { ChatFields } from '../../dialects/openai-wire.js'
import type { EventTranslation, Translation } from '../../dialects/translator.js'

/** The parrot hears one text and repeats it: `{voice, hear}` gives `{repeat}`, or events `{repeat}` and `{done: true}`. */
export function translateForParrot({ fields }: JsonBody<ChatFields>, upstreamModel: string): Translation<ModelFields> {
  const { model, tools, stream } = fields
  if (tools != null) throw unsupported('tools')
  const heard = JSON.stringify({ voice: upstreamModel, hear: lastText(fields), live: stream === true })
  return {
    request: JsonBody.written(heard, { model: upstreamModel }),
    response: ({ repeat }) => {
      if (typeof repeat !== 'string') throw new GatewayError('upstream_failed', 'The upstream repeated nothing.')
      const choice = { index: 0, message: { role: 'assistant', content: repeat, refusal: null }, finish_reason: 'stop' }
      const choices = [{ ...choice, logprobs: null }]
      return JSON.stringify({ id: 'chatcmpl-parrot', object: 'chat.completion', model, choices })
    },
    events: () => new ParrotEvents(model),
    error: (error) => new GatewayError(error.kind, error.message, { ...error.details, param: 'messages' }),
  }
}

class ParrotEvents implements EventTranslation {
  constructor(private readonly model: string) {}

  event({ repeat }: Readonly<Record<string, unknown>>): string {
    return typeof repeat === 'string' ? this.chunk({ delta: { content: repeat }, finish_reason: null }) : ''
  }

  end(): string {
    return `${this.chunk({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`
  }

  private chunk(choice: object): string {
    const chunk = { id: 'chatcmpl-parrot', object: 'chat.completion.chunk', model: this.model }
    return `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, ...choice }] })}\n\n`
  }
}

/** The parrot knows no conversation. */
function lastText({ messages }: ChatFields): string {
  const last = messages.at(-1)
  const content = isRecord(last) ? last['content'] : undefined
  if (typeof content !== 'string') throw unsupported('messages')
  return content
}

const unsupported = (param: string): GatewayError =>
  new GatewayError('invalid_request', `The parrot cannot take '${param}' as it is; send texts without tools.`, {
    code: 'unsupported_value',
    param,
  })
