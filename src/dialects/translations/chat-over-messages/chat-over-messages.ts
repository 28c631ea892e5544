import type { MessagesFields } from '../../anthropic-messages.js'
import type { ChatFields } from '../../openai-wire.js'
import type { Translator } from '../../translator.js'
import { withCallersPath } from '../caller-paths.js'
import { type AnswerTerms, chatCompletion } from './answer.js'
import { ChatChunks } from './events.js'
import { translatedRequest } from './request.js'

/** Chat completions of an upstream that speaks messages. */
export const chatOverMessages: Translator<ChatFields, MessagesFields> = (body, target, verdicts) => {
  const { request, tools, paths } = translatedRequest(body, target, verdicts)
  const { thoughts, unknownWords } = target
  const terms: AnswerTerms = { model: body.fields.model, tools, thoughts, unknownWords }
  const isUsageAsked = body.fields.stream_options?.['include_usage'] === true
  return {
    request,
    response: (answer, texts) => chatCompletion(answer, texts, terms),
    events: () => new ChatChunks(terms, isUsageAsked, target.memory),
    error: (error) => withCallersPath(error, paths.callersPath),
  }
}
