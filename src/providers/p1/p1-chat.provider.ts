import { Injectable } from '@nestjs/common'
import { CHAT_EVENTS } from '../../common/audio-dialect/audio-events.js'
import { audioRefusal } from '../../common/audio-dialect/audio-refusal.js'
import { eventStreamAnswer, jsonAnswer } from '../../common/http/answers.js'
import type { JsonBody, JsonEdits } from '../../common/http/json-body.js'
import type { UpstreamAnswer } from '../../common/http/upstream-answer.js'
import { UpstreamClient } from '../../common/http/upstream-client.js'
import { reportedUsage } from '../../common/http/usage.js'
import type { CallContext } from '../contracts/call-context.js'
import type { ChatFields, ChatProvider } from '../contracts/chat.contract.js'
import { ChatUsageFilter } from './chat-usage-filter.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1.headers.js'

/** `POST /v1/chat/completions` at P1: bytes in, bytes out. */
@Injectable()
export class P1ChatProvider implements ChatProvider {
  constructor(private readonly client: UpstreamClient) {}

  async complete(body: JsonBody<ChatFields>, context: CallContext): Promise<UpstreamAnswer> {
    const { call } = context
    const response = await this.client.send(
      {
        method: 'POST',
        path: '/v1/chat/completions',
        headers: p1Headers(context, 'application/json', 'application/json'),
        body: body.edited(editsFor(body.fields, context)),
      },
      context.target,
      call,
      context.deadlineAtMs,
    )
    if (response.status !== 200) throw await audioRefusal(response, context.callersKey)
    if (body.fields.stream === true) {
      const usage = new ChatUsageFilter(asksForUsage(body.fields), (found) => {
        call.log.usage = found
      })
      return await eventStreamAnswer(response, P1_RESPONSE_HEADERS, CHAT_EVENTS, usage.filter)
    }
    const { answer, value } = await jsonAnswer(response, P1_RESPONSE_HEADERS)
    const usage = reportedUsage(value?.['usage'])
    if (usage !== undefined) call.log.usage = usage
    return answer
  }
}

const asksForUsage = ({ stream_options: options }: ChatFields): boolean => options?.['include_usage'] === true

/** The usage of a stream is reported only on demand, and the gateway always accounts for what it relayed. */
function editsFor(fields: ChatFields, { upstreamModel }: CallContext): JsonEdits {
  const edits: Record<string, string> = {}
  if (upstreamModel !== fields.model) edits['model'] = JSON.stringify(upstreamModel)
  if (fields.stream === true && !asksForUsage(fields)) {
    edits['stream_options'] = JSON.stringify({ ...fields.stream_options, include_usage: true })
  }
  return edits
}
