import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import type { JsonBody, ModelFields } from '../../core/json-body.js'
import { RelayedUsage } from '../../core/usage.js'
import { sendOpenAIRequest } from '../../dialects/openai-wire.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { estimatedResponse, HeaderAllowList } from '../../upstream/upstream-response.js'
import type { AttemptContext, JsonProvider } from '../contract.js'

const RESPONSE_HEADERS = new HeaderAllowList()

/** Moderations at the toy upstream: bytes in, bytes out. */
@Injectable()
export class ToyModerationsProvider implements JsonProvider {
  constructor(private readonly client: UpstreamClient) {}

  async respond(body: JsonBody<ModelFields>, context: AttemptContext): Promise<ProviderResponse> {
    const headers = ['x-toy-key', context.credentials, 'content-type', 'application/json']
    const bytes = body.edited({ model: JSON.stringify(context.upstreamModel) })
    const request = { method: 'POST', path: '/toy/moderations', headers, body: bytes } as const
    const response = await sendOpenAIRequest(this.client, request, context)
    return await estimatedResponse(response, RESPONSE_HEADERS, new RelayedUsage())
  }
}
