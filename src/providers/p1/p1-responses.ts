import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import type { JsonBody } from '../../core/json-body.js'
import {
  relayResponse,
  relayResumedEvents,
  type ResponsesCall,
  type ResponsesFields,
  type ResponsesQuestion,
} from '../../dialects/openai-responses.js'
import { sendOpenAIRequest } from '../../dialects/openai-wire.js'
import { progressIn, relayKeptResponse, type ResponseProgress } from '../../dialects/response-state.js'
import { withoutOwnReasoning } from '../../dialects/translations/own-marks.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { type UpstreamRequest, UpstreamClient } from '../../upstream/upstream-client.js'
import { jsonResponse } from '../../upstream/upstream-response.js'
import type { AttemptContext, KeptResponseCall, KeptResponseRead, KeptResponsesProvider } from '../contract.js'
import { P1_RESPONSE_HEADERS, p1Headers } from './p1-chat.js'

const PATH = '/v1/responses'

/** The Responses API at P1, whose dialect is that of the endpoints. */
@Injectable()
export class P1ResponsesProvider implements KeptResponsesProvider {
  constructor(private readonly client: UpstreamClient) {}

  async create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse> {
    await call.background?.admit()
    return await relayResponse(await this.post(PATH, call.body, context), P1_RESPONSE_HEADERS, call, context)
  }

  async countInputTokens({ body }: ResponsesQuestion, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.post(`${PATH}/input_tokens`, body, context)
    return (await jsonResponse(response, P1_RESPONSE_HEADERS)).response
  }

  async read({ id, query, ended }: KeptResponseRead, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('GET', `${PATH}/${id}${query}`, context)
    return await relayKeptResponse(response, P1_RESPONSE_HEADERS, ended)
  }

  async events({ id, query, ended }: KeptResponseRead, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('GET', `${PATH}/${id}${query}`, context, 'text/event-stream')
    const isContinued = query.includes('starting_after=')
    return await relayResumedEvents(response, P1_RESPONSE_HEADERS, { ended, isContinued }, context.credentials)
  }

  async inputItems({ id, query }: KeptResponseCall, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('GET', `${PATH}/${id}/input_items${query}`, context)
    return (await jsonResponse(response, P1_RESPONSE_HEADERS)).response
  }

  async cancel({ id, query, ended }: KeptResponseRead, context: AttemptContext): Promise<ProviderResponse> {
    const response = await this.send('POST', `${PATH}/${id}/cancel${query}`, context)
    return await relayKeptResponse(response, P1_RESPONSE_HEADERS, ended)
  }

  async delete({ id }: KeptResponseCall, context: AttemptContext): Promise<ProviderResponse> {
    return (await jsonResponse(await this.send('DELETE', `${PATH}/${id}`, context), P1_RESPONSE_HEADERS)).response
  }

  async progress(id: string, context: AttemptContext): Promise<ResponseProgress> {
    try {
      return await progressIn(await this.send('GET', `${PATH}/${id}`, context), P1_RESPONSE_HEADERS, id)
    } catch (error) {
      if (isUnknownResponse(error)) return 'unknown'
      throw error
    }
  }

  private post(path: string, request: JsonBody<ResponsesFields>, context: AttemptContext) {
    const body = withoutOwnReasoning(request)
    const { upstreamModel } = context
    const edits = upstreamModel === body.fields.model ? {} : { model: JSON.stringify(upstreamModel) }
    const headers = p1Headers(context, 'application/json', 'application/json')
    return sendOpenAIRequest(this.client, { method: 'POST', path, headers, body: body.edited(edits) }, context)
  }

  private send(
    method: UpstreamRequest['method'],
    path: string,
    context: AttemptContext,
    accept = 'application/json',
  ): Promise<UpstreamResponse> {
    const headers = ['authorization', `Bearer ${context.credentials}`, 'accept', accept]
    return sendOpenAIRequest(this.client, { method, path, headers }, context)
  }
}

/** In the upstream's own words: a proxy before it may know no path at all. */
const isUnknownResponse = (error: unknown): boolean =>
  error instanceof GatewayError && error.kind === 'unknown_model' && error.details.relayed !== undefined
