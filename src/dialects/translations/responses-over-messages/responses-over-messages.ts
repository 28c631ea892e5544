import type { MessagesFields } from '../../anthropic-messages.js'
import type { ResponsesFields } from '../../openai-responses.js'
import type { Translator } from '../../translator.js'
import { withCallersPath } from '../caller-paths.js'
import { ResponseEnvelope } from '../responses/envelope.js'
import { responseOfMessage } from './answer.js'
import { MessageToResponseEvents } from './events.js'
import { MessagesDraft } from './messages-draft.js'
import { messagesRequest } from './request.js'

/** Responses served by an upstream that speaks messages. */
export const responsesOverMessages: Translator<ResponsesFields, MessagesFields> = (body, target, verdicts) => {
  const draft = new MessagesDraft(body, target, verdicts)
  const { request, customNames } = messagesRequest(draft)
  const { wishes, paths } = draft
  const envelope = new ResponseEnvelope(body, target.kept, draft.tools)
  const context = { envelope, wishes, target, customNames }
  return {
    request,
    response: (answer, texts) => responseOfMessage(answer, texts, context),
    events: () => new MessageToResponseEvents(context),
    error: (error) => withCallersPath(error, paths.callersPath),
    made: () => envelope.made,
  }
}
