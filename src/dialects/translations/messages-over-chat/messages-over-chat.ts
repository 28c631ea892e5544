import { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf, JsonTexts } from '../../../core/json-text.js'
import type { MessagesFields } from '../../messages-wire.js'
import type { ChatFields } from '../../openai-wire.js'
import type { Translator } from '../../translator.js'
import { withCallersPath } from '../caller-paths.js'
import { type AnswerContext, messageTextOf } from './answer.js'
import { estimateInputTokens } from './estimate.js'
import { MessageEvents } from './events.js'
import { RequestDraft } from './request-draft.js'
import { translateFields } from './request.js'

/** Serves `/v1/messages` by an upstream that speaks chat completions. */
export const messagesOverChat: Translator<MessagesFields, ChatFields> = (body, target, verdicts) => {
  const { model } = body.fields
  const draft = new RequestDraft({ ...body.fields }, new JsonTexts(body.bytes), target.facts, verdicts)
  const fields = translateFields(draft, target.upstreamModel)
  const context: AnswerContext = {
    model,
    requestId: target.requestId,
    unknownWords: target.unknownWords,
    toolNames: draft.toolNames,
    inputTokens: () => estimateInputTokens(body.fields),
  }
  return {
    request: JsonBody.written(jsonTextOf(fields), fields),
    response: (answer, texts) => messageTextOf(answer, texts, context),
    events: () => new MessageEvents(context, target.memory),
    error: (error) => withCallersPath(error, (steps) => draft.callersPath(steps)),
  }
}
