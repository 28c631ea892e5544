import { Injectable } from '@nestjs/common'
import { keyCredentials, noOptions } from '../../config/channel-schema.js'
import type { ProviderResponse } from '../../core/byte-stream.js'
import type { JsonBody } from '../../core/json-body.js'
import { completeChat } from '../../dialects/openai-chat.js'
import type { ChatFields } from '../../dialects/openai-wire.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { HeaderAllowList } from '../../upstream/upstream-response.js'
import type { AttemptContext, ChatProvider, ProviderManifest } from '../contract.js'

const RESPONSE_HEADERS = new HeaderAllowList()

/** Chat at the toy upstream, which speaks the OpenAI dialect under a path and a key header of its own. */
@Injectable()
class ToyChatProvider implements ChatProvider {
  constructor(private readonly client: UpstreamClient) {}

  respond(body: JsonBody<ChatFields>, context: AttemptContext): Promise<ProviderResponse> {
    const headers = ['x-toy-key', context.credentials, 'content-type', 'application/json']
    const upstream = { path: '/toy/chat', headers, responseHeaders: RESPONSE_HEADERS } as const
    return completeChat(this.client, upstream, body, context)
  }
}

/** The toy upstream. */
export const TOY_MANIFEST: ProviderManifest = {
  name: 'toy',
  credentialsSchema: keyCredentials,
  optionsSchema: noOptions,
  capabilities: { chat: ToyChatProvider },
  defaultModelClass: 'chat',
  models: { chat: ['toy-1'] },
}
