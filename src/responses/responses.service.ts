import { Inject, Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { GatewayError, quoted } from '../core/errors.js'
import type { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { isRecord } from '../core/validation-rules.js'
import type { KeepResponse } from '../dialects/openai-responses.js'
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
import type { ResponsesRequestDto } from './responses.dto.js'
import { RESPONSES } from './responses.endpoints.js'
import { ResponsePins } from './response-pins.js'

/** Of what changes nothing at its upstream. */
const READ_POLICY = { canRetryAfterSend: true } as const
/** Whether a response was deleted must be known, and a second delete is no success. */
const DELETE_POLICY = { canRetryAfterSend: false } as const

/** As upstreams make them; nothing in one needs to be escaped in a path, and a store takes every character. */
const ID = /^[\w-]{1,128}$/

/** Responses, at upstreams that speak them; what an upstream keeps belongs to the caller who asked for it. */
@Injectable()
export class ResponsesService {
  constructor(
    private readonly router: ProviderRouter,
    private readonly pins: ResponsePins,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async create(body: JsonBody<ResponsesRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.routeOf(body, call)
    if (asksForReasoning(body.fields)) call.log.reasons = true
    const estimatedUse = call.quota === undefined ? undefined : RESPONSES.estimate(body.bytes.length, body.fields)
    const isKept = body.fields.store !== false
    // A request that was sent may have been done. Of a response that is kept nobody would know the id then, to read or delete what was
    // said in it: such a request is not sent again, as a create of a task is not.
    return route.attempt(call, { canRetryAfterSend: !isKept, estimatedUse }, (provider, context) => {
      const keep = isKept ? this.keeping(call, context) : undefined
      return provider.create({ body, keep }, context)
    })
  }

  async countInputTokens(body: JsonBody<ResponsesRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.routeOf(body, call)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.countInputTokens(body, context))
  }

  async find(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.channelOf(kept.id, call)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.read(kept, context))
  }

  async inputItems(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.channelOf(kept.id, call)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.inputItems(kept, context))
  }

  async delete(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.channelOf(kept.id, call)
    const answer = await route.attempt(call, DELETE_POLICY, (provider, context) => provider.delete(kept, context))
    await this.forget(kept.id, call)
    return answer
  }

  private async routeOf(
    { fields }: JsonBody<ResponsesRequestDto>,
    call: RequestContext,
  ): Promise<Route<ResponsesProvider>> {
    call.log.model = fields.model
    assertServed(fields)
    const channelId = await this.referredChannel(fields, call)
    return this.router.route('responses', fields.model, call.caller, channelId)
  }

  /** The channel that keeps what the request refers to; undefined where it refers to nothing. */
  private async referredChannel(
    { previous_response_id: previous, input }: ResponsesRequestDto,
    { caller }: RequestContext,
  ): Promise<string | undefined> {
    const items = referredItems(input)
    const ids = previous == null ? items : [previous, ...items]
    if (ids.length === 0) return undefined
    const channels = await this.channelsOf(ids, caller)
    if (previous != null && !channels.has(previous)) throw unknownPrevious(previous)
    const missing = items.find((id) => !channels.has(id))
    if (missing !== undefined) throw unknownItem(missing)
    const [channelId, other] = new Set(channels.values())
    if (other !== undefined) throw scattered()
    return channelId
  }

  private async channelOf(id: string, { caller }: RequestContext): Promise<PinnedRoute<KeptResponsesProvider>> {
    const channelId = (await this.channelsOf([id], caller)).get(id)
    const routes = channelId === undefined ? [] : this.router.responseChannels(caller)
    const route = routes.find((each) => each.channelId === channelId)
    if (route === undefined) throw new GatewayError('not_found', `Response with id ${quoted(id)} not found.`)
    return route
  }

  /** No store is asked for what cannot be an id. */
  private async channelsOf(ids: readonly string[], caller: Caller): Promise<ReadonlyMap<string, string>> {
    const possible = [...new Set(ids)].filter((id) => ID.test(id))
    return possible.length === 0 ? new Map() : await this.pins.channelsOf(ownerOf(caller), possible)
  }

  /** A store that fails costs the caller nothing but later reads: the answer has been paid for. */
  private keeping({ caller, requestId }: RequestContext, { channelId }: AttemptContext): KeepResponse {
    return async (ids) => {
      try {
        await this.pins.keep({ ownerId: ownerOf(caller), channelId, ...ids })
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

/** Items that are read where they are kept: references, and reasoning or pictures that are not sent along. */
function referredItems(input: unknown): readonly string[] {
  if (!Array.isArray(input)) return []
  return input
    .filter((item) => isRecord(item) && isReference(item))
    .map((item: Readonly<Record<string, unknown>>) => item['id'])
    .filter((id) => typeof id === 'string')
}

function isReference({ type, role, encrypted_content: sealed, result }: Readonly<Record<string, unknown>>): boolean {
  if (type === 'reasoning') return typeof sealed !== 'string'
  if (type === 'image_generation_call') return typeof result !== 'string'
  return type === 'item_reference' || (type == null && role == null)
}

const unknownPrevious = (id: string): GatewayError =>
  new GatewayError('invalid_request', `Previous response with id ${quoted(id)} not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  })

const unknownItem = (id: string): GatewayError =>
  new GatewayError('not_found', `Item with id ${quoted(id)} not found. Items are not kept when store is false.`, {
    param: 'input',
  })

const scattered = (): GatewayError =>
  new GatewayError('invalid_request', 'The request refers to responses that different channels keep.', {
    param: 'input',
    code: 'unsupported_value',
  })
