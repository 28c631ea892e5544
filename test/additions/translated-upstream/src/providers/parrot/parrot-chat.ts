import { Injectable } from '@nestjs/common'
import { keyCredentials, noOptions } from '../../config/channel-schema.js'
import { ProviderResponse } from '../../core/byte-stream.js'
import type { JsonBody } from '../../core/json-body.js'
import { tokensOf } from '../../core/token-counter.js'
import { RelayedUsage } from '../../core/usage.js'
import { ChatUsageEstimator } from '../../dialects/openai-chat.js'
import { type ChatFields, sendOpenAIRequest } from '../../dialects/openai-wire.js'
import { sendTranslated } from '../../dialects/translator.js'
import type { FrameCounter } from '../../upstream/sse-relay.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { eventStreamResponse, HeaderAllowList, jsonResponse } from '../../upstream/upstream-response.js'
import type { AttemptContext, ChatProvider, ProviderManifest } from '../contract.js'
import { translateForParrot } from './parrot-translator.js'

const RESPONSE_HEADERS = new HeaderAllowList()
const EVENTS = { completionMarks: ['"done":true'], errorMark: 'data: { "error"' }

/** Chat at the parrot, which has a dialect of its own; its usage is the gateway's estimate, as it tells none. */
@Injectable()
class ParrotChatProvider implements ChatProvider {
  constructor(private readonly client: UpstreamClient) {}

  respond(body: JsonBody<ChatFields>, context: AttemptContext): Promise<ProviderResponse> {
    return sendTranslated(translateForParrot(body, context.upstreamModel), context.memory, ({ bytes }) =>
      this.send(bytes, body.fields, context),
    )
  }

  private async send(body: Buffer, fields: ChatFields, context: AttemptContext): Promise<ProviderResponse> {
    const headers = ['authorization', `Bearer ${context.credentials}`, 'content-type', 'application/json']
    const request = { method: 'POST', path: '/squawk', headers, body } as const
    // Its errors alone are of the OpenAI dialect.
    const response = await sendOpenAIRequest(this.client, request, context)
    if (fields.stream !== true) return await this.whole(response, fields)
    const deltas = new RepeatCounter()
    const usage = new RelayedUsage(new ChatUsageEstimator(fields, deltas))
    // Of a stream whose client leaves before it begins, this alone is known.
    context.record.usage = usage
    return await eventStreamResponse(response, RESPONSE_HEADERS, { ...EVENTS, deltas }, { usage })
  }

  private async whole(response: UpstreamResponse, fields: ChatFields): Promise<ProviderResponse> {
    const { response: answer, value } = await jsonResponse(response, RESPONSE_HEADERS)
    const estimator = new ChatUsageEstimator(fields, { count: tokensOf(String(value?.['repeat'])) })
    return new ProviderResponse(answer.status, answer.headers, answer.body, new RelayedUsage(estimator))
  }
}

/** Frames with a piece of the answer: about a token each. */
class RepeatCounter implements FrameCounter {
  count = 0
  private countBefore = 0

  checkpoint(): void {
    this.countBefore = this.count
  }

  rollBack(): void {
    this.count = this.countBefore
  }

  line(bytes: Buffer, start: number, end: number): void {
    if (bytes.subarray(start, end).includes('"repeat"')) this.count++
  }
}

/** The parrot. */
export const PARROT_MANIFEST: ProviderManifest = {
  name: 'parrot',
  credentialsSchema: keyCredentials,
  optionsSchema: noOptions,
  capabilities: { chat: ParrotChatProvider },
  defaultModelClass: 'chat',
  models: { chat: ['parrot-1'] },
}
