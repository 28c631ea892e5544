import { Inject, Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { JsonBody } from '../core/json-body.js'
import type { EstimatedUse } from '../core/quota.js'
import { ClientDisconnect, type RequestContext } from '../core/request-context.js'
import type { KeepResponse } from '../dialects/kept-answers.js'
import type { BackgroundResponse, ResponsesCall, ResumedRequest } from '../dialects/openai-responses.js'
import type { EndOfResponse } from '../dialects/response-state.js'
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
import { BackgroundBilling } from './background-billing.js'
import type { BackgroundResponseRow } from './background-responses.js'
import { ResponseKeeper, unknownResponse } from './response-keeper.js'
import { ResponsePins } from './response-pins.js'
import { type ResolvedRequest, ResponseReferences } from './response-references.js'
import type { FindResponseCall, ResponsesRequestDto } from './responses.dto.js'
import { RESPONSES } from './responses.endpoints.js'

/** Of what changes nothing at its upstream, or nothing more when it is done twice. */
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
    private readonly billing: BackgroundBilling,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async create(body: JsonBody<ResponsesRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { request, route } = await this.routeOf(body, call)
    if (asksForReasoning(body.fields)) call.log.reasons = true
    const estimatedUse = call.quota === undefined ? undefined : estimateOf(request)
    const isKept = body.fields.store !== false
    // A request that was sent may have been done, and its response be kept under an id that is lost: what was said in it could be neither
    // read nor deleted. So it is not sent again, as a create of a task is not.
    return route.attempt(call, { canRetryAfterSend: !isKept, estimatedUse }, (provider, context) => {
      const keep = isKept ? this.keeping(request, call, context) : undefined
      if (body.fields.background !== true) return provider.create(new CallOfAttempt(request, keep), context)
      const background = this.inBackground(body.fields, call, context)
      return ignoringDisconnect(context, (own) => provider.create(new CallOfAttempt(request, keep, background), own))
    })
  }

  async countInputTokens(body: JsonBody<ResponsesRequestDto>, call: RequestContext): Promise<ProviderResponse> {
    const { request, route } = await this.routeOf(body, call)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.countInputTokens(request, context))
  }

  async find({ isStreamed, ...kept }: FindResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const { route, ended } = await this.billedUpstreamOf(kept.id, call)
    if (route === undefined) {
      const answer = await this.keeper.read(kept.id, call.caller)
      if (isStreamed) throw notStreamable()
      return answer
    }
    const read = { ...kept, ended }
    return route.attempt(call, READ_POLICY, (provider, context) =>
      isStreamed ? provider.events(read, context) : provider.read(read, context),
    )
  }

  async cancel(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const { route, ended } = await this.billedUpstreamOf(kept.id, call)
    if (route === undefined) {
      await this.keeper.read(kept.id, call.caller)
      throw notCancellable()
    }
    const cancelled = { ...kept, ended }
    const answer = await route.attempt(call, READ_POLICY, (provider, context) => provider.cancel(cancelled, context))
    await this.billing.hasten(ownerOf(call.caller), kept.id)
    return answer
  }

  async inputItems(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.upstreamOf(kept.id, call)
    if (route === undefined) return await this.keeper.inputItems(kept.id, kept.query, call.caller)
    return route.attempt(call, READ_POLICY, (provider, context) => provider.inputItems(kept, context))
  }

  async delete(kept: KeptResponseCall, call: RequestContext): Promise<ProviderResponse> {
    const route = await this.upstreamOf(kept.id, call)
    if (route === undefined) return await this.keeper.delete(kept.id, call.caller)
    const row = await this.billing.find(ownerOf(call.caller), kept.id)
    if (row !== undefined) await this.settleFirst(row, route, call)
    const answer = await route.attempt(call, DELETE_POLICY, (provider, context) => provider.delete(kept, context))
    if (row !== undefined) await this.billing.deleted(row)
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

  /**
   * Records what a response in the background has used, if it has ended: no upstream says so of a deleted one. Rejects where the upstream
   * cannot say it, or the store not take it: a delete can be repeated.
   */
  private async settleFirst(
    row: BackgroundResponseRow,
    route: PinnedRoute<KeptResponsesProvider>,
    call: RequestContext,
  ): Promise<void> {
    const progress = await route.attempt(call, READ_POLICY, (provider, context) => provider.progress(row.id, context))
    if (typeof progress === 'object') await this.billing.settle(row, progress)
  }

  /** `ended` is absent where no bill waits for the end, so that answers pass unread. Both are looked up at once, as callers poll. */
  private async billedUpstreamOf(
    id: string,
    call: RequestContext,
  ): Promise<{
    readonly route: PinnedRoute<KeptResponsesProvider> | undefined
    readonly ended: EndOfResponse | undefined
  }> {
    const row = this.billing.find(ownerOf(call.caller), id).catch(() => 'not known')
    const route = await this.upstreamOf(id, call)
    return { route, ended: (await row) === undefined ? undefined : this.endOf(call.caller) }
  }

  private endOf(caller: Caller): EndOfResponse {
    return (end) => this.billing.ended(ownerOf(caller), end)
  }

  private inBackground(
    { model, store }: ResponsesRequestDto,
    { caller, path }: RequestContext,
    { channelId, callersKey }: AttemptContext,
  ): BackgroundResponse {
    const ownerId = ownerOf(caller)
    return {
      admit: async () => {
        if (store === false) throw backgroundWithoutStore()
        if (callersKey) throw backgroundWithCallersKey()
        await this.billing.assertPossible()
      },
      begun: ({ responseId: id }) => this.billing.begin({ ownerId, id, channelId, model, route: path }),
      ended: this.endOf(caller),
    }
  }

  /** A store that fails costs the caller nothing but later reads: the answer has been paid for. */
  private keeping(request: ResolvedRequest, call: RequestContext, { channelId }: AttemptContext): KeepResponse {
    const { caller, requestId } = call
    return async (answer) => {
      try {
        if ('response' in answer) await this.keeper.keep(answer, request, call)
        else await this.pins.keep({ ownerId: ownerOf(caller), channelId, ...answer })
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
    readonly background?: BackgroundResponse,
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

/**
 * A create whose caller leaves before it is answered goes on: its upstream may work in the background from then on, and is paid for
 * that, so the id must be learnt.
 */
async function ignoringDisconnect<Result>(
  context: AttemptContext,
  run: (context: AttemptContext) => Promise<Result>,
): Promise<Result> {
  context.disconnect.throwIfAborted()
  const disconnect = new ClientDisconnect()
  let release: (() => void) | undefined
  let isAnswered = false
  context.disconnect.onAbort(() => {
    if (isAnswered) disconnect.abort()
    else release = context.disconnect.hold()
  })
  try {
    return await run({ ...context, disconnect })
  } finally {
    isAnswered = true
    if (release !== undefined) {
      disconnect.abort()
      // What the answer has used is noted meanwhile.
      setImmediate(release)
    }
  }
}

function assertServed({ conversation }: ResponsesRequestDto): void {
  if (conversation != null)
    throw unsupported(
      'conversation',
      "'conversation' is not served. Send previous_response_id, or the items themselves.",
    )
}

/** In the words of upstreams. */
const backgroundWithoutStore = (): GatewayError =>
  new GatewayError('invalid_request', "Background mode requires 'store' to be true.", {
    param: 'background',
    code: 'invalid_value',
  })

const backgroundWithCallersKey = (): GatewayError =>
  unsupported(
    'background',
    "'background' is served with keys of the gateway alone, as the end of the response could not be asked for with yours. " +
      'Send it as false, and stream the answer.',
  )

const notStreamable = (): GatewayError =>
  new GatewayError('invalid_request', 'Only responses created with background=true can be streamed from here.', {
    param: 'stream',
    code: 'invalid_value',
  })

const notCancellable = (): GatewayError => new GatewayError('invalid_request', 'Cannot cancel a synchronous response.')

const unsupported = (param: string, message: string): GatewayError =>
  new GatewayError('invalid_request', `Unsupported value: ${message}`, { param, code: 'unsupported_value' })
