import { Inject, Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { ownerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { JsonBody } from '../core/json-body.js'
import type { EstimatedUse } from '../core/quota.js'
import type { RequestContext } from '../core/request-context.js'
import type { KeepResponse } from '../dialects/kept-answers.js'
import type { ResponsesCall, ResumedRequest } from '../dialects/openai-responses.js'
import { asksForReasoning } from '../limits/estimate-usage.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import type {
  AttemptContext,
  KeptResponseCall,
  KeptResponsesProvider,
  ResponsesProvider,
} from '../providers/contract.js'
import { type PinnedRoute, ProviderRouter, type Route } from '../routing/router.js'
import { ResponseKeeper, unknownResponse } from './response-keeper.js'
import { ResponsePins } from './response-pins.js'
import { type ResolvedRequest, ResponseReferences } from './response-references.js'
import type { ResponsesRequestDto } from './responses.dto.js'
import { RESPONSES } from './responses.endpoints.js'

/** Of what changes nothing at its upstream. */
const READ_POLICY = { canRetryAfterSend: true } as const
/** Whether a response was deleted must be known, and a second delete is no success. */
const DELETE_POLICY = { canRetryAfterSend: false } as const

/** Responses, at upstreams that speak them or by translation; what is kept of them belongs to the caller who asked for it. */
@Injectable()
export class ResponsesService {
  constructor(
    private readonly router: ProviderRouter,
    private readonly references: ResponseReferences,
    private readonly pins: ResponsePins,
    private readonly keeper: ResponseKeeper,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async create(body: JsonBody<ResponsesRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { request, route } = await this.routeOf(body, call)
    if (asksForReasoning(body.fields)) call.log.reasons = true
    const estimatedUse = call.quota === undefined ? undefined : estimateOf(request)
    const isKept = body.fields.store !== false
    // A request that was sent may have been done. Of a response that is kept nobody would know the id then, to read or delete what was
    // said in it: such a request is not sent again, as a create of a task is not.
    return route.attempt(call, { canRetryAfterSend: !isKept, estimatedUse }, (provider, context) =>
      provider.create(new CallOfAttempt(request, isKept ? this.keeping(request, call, context) : undefined), context),
    )
  }

  async countInputTokens(body: JsonBody<ResponsesRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { request, route } = await this.routeOf(body, call)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.countInputTokens(request, context))
  }

  async find(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.upstreamOf(kept.id, call)
    if (route === undefined) return await this.keeper.read(kept.id, call.caller)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.read(kept, context))
  }

  async inputItems(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.upstreamOf(kept.id, call)
    if (route === undefined) return await this.keeper.inputItems(kept.id, kept.query, call.caller)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.inputItems(kept, context))
  }

  async delete(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.upstreamOf(kept.id, call)
    if (route === undefined) return await this.keeper.delete(kept.id, call.caller)
    const answer = await route.attempt(call, DELETE_POLICY, (provider, context) => provider.delete(kept, context))
    await this.forget(kept.id, call)
    return answer
  }

  private async routeOf(
    body: JsonBody<ResponsesRequestDto>,
    call: RequestContext,
  ): Promise<{ readonly request: ResolvedRequest; readonly route: Route<ResponsesProvider> }> {
    const { fields } = body
    call.log.model = fields.model
    assertServed(fields)
    const request = await this.references.resolve(body, call)
    return { request, route: this.router.route('responses', fields.model, call.caller, request.channelId) }
  }

  /** The channel whose upstream keeps a response; undefined where none does. */
  private async upstreamOf(
    id: string,
    { caller }: RequestContext,
  ): Promise<PinnedRoute<KeptResponsesProvider> | undefined> {
    const channelId = await this.references.channelOf(id, caller)
    if (channelId === undefined) return undefined
    const route = this.router.responseChannels(caller).find((each) => each.channelId === channelId)
    if (route === undefined) throw unknownResponse(id)
    return route
  }

  /** A store that fails costs the caller nothing but later reads: the answer has been paid for. */
  private keeping(request: ResolvedRequest, call: RequestContext, { channelId }: AttemptContext): KeepResponse {
    const { caller, requestId } = call
    return async ({ text, ...ids }) => {
      try {
        if (text === undefined) await this.pins.keep({ ownerId: ownerOf(caller), channelId, ...ids })
        else await this.keeper.keep(ids.responseId, text, request, call)
      } catch (error) {
        this.logger.warn({ err: error, requestId }, 'a response could not be kept')
      }
    }
  }

  /** What a store does not forget the upstream does not know any more. */
  private async forget(id: string, { caller, requestId }: RequestContext): Promise<void> {
    try {
      await this.pins.forget(ownerOf(caller), id)
    } catch (error) {
      this.logger.warn({ err: error, requestId }, 'a deleted response could not be forgotten')
    }
  }
}

/** Of a request whose body is written when a provider asks for it: an upstream that speaks responses needs another than a translation. */
class CallOfAttempt implements ResponsesCall {
  constructor(
    private readonly request: ResolvedRequest,
    readonly keep: KeepResponse | undefined,
  ) {}

  get body(): JsonBody<ResponsesRequestDto> {
    return this.request.body
  }

  get resumed(): ResumedRequest | undefined {
    return this.request.resumed
  }
}

function estimateOf({ body, resumed }: ResolvedRequest): EstimatedUse {
  const sent = resumed?.body ?? body
  return RESPONSES.estimate(sent.bytes.length, sent.fields)
}

function assertServed({ background, conversation }: ResponsesRequestDto): void {
  if (background === true)
    throw unsupported('background', "'background' responses are not served. Send it as false, and stream the answer.")
  if (conversation != null)
    throw unsupported(
      'conversation',
      "'conversation' is not served. Send previous_response_id, or the items themselves.",
    )
}

const unsupported = (param: string, message: string): GatewayError =>
  new GatewayError('invalid_request', `Unsupported value: ${message}`, { param, code: 'unsupported_value' })
