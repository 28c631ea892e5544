import { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf, JsonTexts } from '../../../core/json-text.js'
import { estimateInputTokens, type MessagesFields } from '../../anthropic-messages.js'
import type { ChatFields } from '../../openai-wire.js'
import type { Translator } from '../../translator.js'
import { withCallersPath, withFieldInMessage } from '../caller-paths.js'
import { type MessageContext, messageTextOf } from './answer.js'
import { MessageEvents } from './events.js'
import { ChatRequestDraft } from './request-draft.js'
import { translateFields } from './request.js'

/** Serves `/v1/messages` by an upstream that speaks chat completions. */
export const messagesOverChat: Translator<MessagesFields, ChatFields> = (body, target, verdicts) => {
  const { model } = body.fields
  const draft = new ChatRequestDraft({ ...body.fields }, new JsonTexts(body.bytes), target.facts, verdicts)
  const fields = translateFields(draft, target.upstreamModel)
  const context: MessageContext = {
    model,
    requestId: target.requestId,
    unknownWords: target.unknownWords,
    toolNames: draft.toolNames,
    inputTokens: () => estimateInputTokens(body.fields, false),
  }
  return {
    request: JsonBody.written(jsonTextOf(fields), fields),
    response: (answer, texts) => messageTextOf(answer, texts, context),
    events: () => new MessageEvents(context, target.memory),
    error: (error) => withFieldInMessage(withCallersPath(error, (steps) => draft.callersPath(steps))),
  }
}
