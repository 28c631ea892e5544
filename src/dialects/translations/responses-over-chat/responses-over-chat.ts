import type { ResponsesFields } from '../../openai-responses.js'
import type { ChatFields } from '../../openai-wire.js'
import type { Translator } from '../../translator.js'
import { withCallersPath } from '../caller-paths.js'
import { ResponseEnvelope } from '../responses/envelope.js'
import { ResponsesDraft } from '../responses/request-draft.js'
import { responseOfChat } from './answer.js'
import { ChatToResponseEvents } from './events.js'
import { chatRequest } from './request.js'

/** Responses served by an upstream that speaks chat completions. */
export const responsesOverChat: Translator<ResponsesFields, ChatFields> = (body, target, verdicts) => {
  const draft = new ResponsesDraft(body, target, verdicts)
  const request = chatRequest(draft)
  const envelope = new ResponseEnvelope(body, target.kept, draft.tools)
  const context = { envelope, wishes: draft.wishes, target }
  return {
    request,
    response: (answer, texts) => responseOfChat(answer, texts, context),
    events: () => new ChatToResponseEvents(context),
    error: (error) => withCallersPath(error, draft.paths.callersPath),
    made: () => envelope.made,
  }
}
