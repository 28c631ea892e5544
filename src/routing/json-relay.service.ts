import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { EndpointSpec } from '../core/endpoint.js'
import type { JsonBody, ModelFields } from '../core/json-body.js'
import type { EstimatedUse } from '../core/quota.js'
import type { RequestContext } from '../core/request-context.js'
import { asksForReasoning } from '../limits/estimate-usage.js'
import type { Capability, JsonProvider, ProviderOf } from '../providers/contract.js'
import { ProviderRouter, type Route } from './router.js'

/** The capabilities whose requests are answered from their JSON alone. */
type JsonCapability = {
  [C in Capability]: ProviderOf<C> extends Pick<JsonProvider<never>, 'respond'> ? C : never
}[Exclude<Capability, 'document'>]

/** An endpoint whose requests are JSON and name their model. */
export interface JsonEndpoint extends EndpointSpec {
  readonly capability: JsonCapability
  readonly estimate: (bodyBytes: number, fields: object) => EstimatedUse
}

/** The service of endpoints without rules of their own: relays a JSON request to a provider that serves its model. */
@Injectable()
export class JsonRelayService {
  constructor(private readonly router: ProviderRouter) {}

  /**
   * `body` has been checked against the endpoint's DTO. Rejects with the router's and the provider's `GatewayError`s. A
   * request that was sent may be sent once more on another channel: it creates nothing that lasts.
   */
  respond(
    { capability, estimate }: JsonEndpoint,
    body: JsonBody<ModelFields>,
    call: RequestContext,
  ): Promise<ProviderResponse> {
    const { model } = body.fields
    call.log.model = model
    if (asksForReasoning(body.fields)) call.log.reasons = true
    const route: Route<JsonProvider> = this.router.route(capability, model, call.caller)
    const estimatedUse = call.quota === undefined ? undefined : estimate(body.bytes.length, body.fields)
    return route.attempt(call, { canRetryAfterSend: true, estimatedUse }, (provider, context) =>
      provider.respond(body, context),
    )
  }
}
