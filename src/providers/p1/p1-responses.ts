import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import type { JsonBody } from '../../core/json-body.js'
import {
  relayResponse,
  type ResponsesCall,
  type ResponsesFields,
  type ResponsesQuestion,
} from '../../dialects/openai-responses.js'
import { sendOpenAIRequest } from '../../dialects/openai-wire.js'
import { withoutOwnReasoning } from '../../dialects/translations/own-marks.js'
import { type UpstreamRequest, UpstreamClient } from '../../upstream/upstream-client.js'
import { jsonResponse } from '../../upstream/upstream-response.js'
import type { AttemptContext, KeptResponseCall, KeptResponsesProvider } from '../contract.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1-chat.js'

const PATH = '/v1/responses'

/** The Responses API at P1, whose dialect is that of the endpoints. */
@Injectable()
export class P1ResponsesProvider implements KeptResponsesProvider {
  constructor(private readonly client: UpstreamClient) {}

  async create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse> {
    return await relayResponse(await this.post(PATH, call.body, context), P1_RESPONSE_HEADERS, call, context)
  }

  async countInputTokens({ body }: ResponsesQuestion, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.post(`${PATH}/input_tokens`, body, context)
    return (await jsonResponse(response, P1_RESPONSE_HEADERS)).response
  }

  async read({ id, query }: KeptResponseCall, context: AttemptContext): Promise<ProviderResponse> {
    return await this.ask('GET', `${PATH}/${id}${query}`, context)
  }

  async inputItems({ id, query }: KeptResponseCall, context: AttemptContext): Promise<ProviderResponse> {
    return await this.ask('GET', `${PATH}/${id}/input_items${query}`, context)
  }

  async delete({ id }: KeptResponseCall, context: AttemptContext): Promise<ProviderResponse> {
    return await this.ask('DELETE', `${PATH}/${id}`, context)
  }

  private post(path: string, request: JsonBody<ResponsesFields>, context: AttemptContext) {
    const body = withoutOwnReasoning(request)
    const { upstreamModel } = context
    const edits = upstreamModel === body.fields.model ? {} : { model: JSON.stringify(upstreamModel) }
    const headers = p1Headers(context, 'application/json', 'application/json')
    return sendOpenAIRequest(this.client, { method: 'POST', path, headers, body: body.edited(edits) }, context)
  }

  private async ask(method: UpstreamRequest['method'], path: string, context: AttemptContext) {
    const headers = ['authorization', `Bearer ${context.credentials}`, 'accept', 'application/json']
    const response = await sendOpenAIRequest(this.client, { method, path, headers }, context)
    return (await jsonResponse(response, P1_RESPONSE_HEADERS)).response
  }
}
