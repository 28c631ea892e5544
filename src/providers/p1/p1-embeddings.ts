import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import type { JsonBody, ModelFields } from '../../core/json-body.js'
import type { Usage } from '../../core/request-context.js'
import { RelayedUsage } from '../../core/usage.js'
import { sendOpenAIRequest } from '../../dialects/openai-wire.js'
import { estimateEmbeddings } from '../../limits/estimate-usage.js'
import { UpstreamClient } from '../../upstream/upstream-client.js'
import { estimatedResponse } from '../../upstream/upstream-response.js'
import type { AttemptContext, JsonProvider } from '../contract.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1-chat.js'

/**
 * `POST /v1/embeddings` at P1, whose dialect is that of the endpoint. `encoding_format` is never touched: the SDKs ask for Base64
 * by themselves and decode what they get.
 */
@Injectable()
export class P1EmbeddingsProvider implements JsonProvider {
  constructor(private readonly client: UpstreamClient) {}

  async respond(body: JsonBody<ModelFields>, context: AttemptContext): Promise<ProviderResponse> {
    const { upstreamModel } = context
    const edits = upstreamModel === body.fields.model ? {} : { model: JSON.stringify(upstreamModel) }
    const headers = p1Headers(context, 'application/json', 'application/json')
    const request = { method: 'POST', path: '/v1/embeddings', headers, body: body.edited(edits) } as const
    const response = await sendOpenAIRequest(this.client, request, context)
    const estimate = estimatedUsage(body.bytes.length, body.fields)
    return await estimatedResponse(response, P1_RESPONSE_HEADERS, new RelayedUsage({ estimate: () => estimate }))
  }
}

/** Where the upstream says nothing. */
function estimatedUsage(bodyBytes: number, fields: object): Usage {
  const { tokens = 0 } = estimateEmbeddings(bodyBytes, fields)
  return { units: { prompt_tokens: tokens, total_tokens: tokens }, estimated: true }
}
