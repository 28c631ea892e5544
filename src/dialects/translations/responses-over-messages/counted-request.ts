import { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf } from '../../../core/json-text.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import type { ResponsesFields } from '../../openai-responses.js'
import type { QuestionTranslation, TranslationTarget } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { inputTokensIn } from '../usage.js'
import { responsesOverMessages } from './responses-over-messages.js'

/** Fields of a messages request that count_tokens does not take: they concern the answer alone. */
const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  'max_tokens',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'metadata',
  'service_tier',
])

/** The question how many tokens a request for a response has, for an upstream that counts those of messages. */
export function countedByMessages(
  body: JsonBody<ResponsesFields>,
  target: TranslationTarget,
  verdicts: Verdicts,
): QuestionTranslation<MessagesFields> {
  const { max_output_tokens: maximum }: Readonly<Record<string, unknown>> = { ...body.fields }
  // How long an answer may be concerns no count, and no verdict is due where it is left out.
  const limited = { ...body.fields, max_output_tokens: maximum ?? target.facts.maxOutputTokens }
  const translation = responsesOverMessages(body.as(limited), target, verdicts)
  const { fields } = translation.request
  const asked = Object.entries(fields).filter(([name]) => !ANSWER_FIELDS.has(name))
  return {
    request: JsonBody.written(jsonTextOf(Object.fromEntries(asked)), fields),
    response: (answer) => JSON.stringify({ object: 'response.input_tokens', input_tokens: inputTokensIn(answer) }),
    error: (error) => translation.error(error),
  }
}
