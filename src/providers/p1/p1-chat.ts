import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import type { JsonBody } from '../../core/json-body.js'
import { completeChat } from '../../dialects/openai-chat.js'
import type { ChatFields } from '../../dialects/openai-wire.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { HeaderAllowList } from '../../upstream/upstream-response.js'
import type { AttemptContext, ChatProvider } from '../contract.js'

/** What P1 may tell the caller beyond the common list; its organisation, project and cookies stay inside. */
export const P1_RESPONSE_HEADERS = new HeaderAllowList('openai-processing-ms', 'openai-version', 'x-ratelimit-*')

/** Request headers for P1: the whole list, as nothing of the caller's own headers travels on. */
export function p1Headers({ credentials }: AttemptContext, contentType: string, accept: string): string[] {
  return ['authorization', `Bearer ${credentials}`, 'content-type', contentType, 'accept', accept]
}

/** `POST /v1/chat/completions` at P1, whose dialect is that of the endpoint. */
@Injectable()
export class P1ChatProvider implements ChatProvider {
  constructor(private readonly client: UpstreamClient) {}

  respond(body: JsonBody<ChatFields>, context: AttemptContext): Promise<ProviderResponse> {
    const headers = p1Headers(context, 'application/json', 'application/json')
    const upstream = { path: '/v1/chat/completions', headers, responseHeaders: P1_RESPONSE_HEADERS } as const
    return completeChat(this.client, upstream, body, context)
  }
}
