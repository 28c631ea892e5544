import type { IncomingMessage } from 'node:http'
import { type CanActivate, Controller, createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common'
import type { Request } from 'express'
import { KeyTable } from '../auth/key-table.js'
import { plainKey, readKey } from '../auth/key.guard.js'
import { type FieldError, GatewayError } from '../core/errors.js'
import { MemberNames } from '../core/member-names.js'
import { type RequestContext, contextOf } from '../core/request-context.js'
import { RateLimiter } from '../limits/rate-limiter.js'
import type { RealtimeOpening } from '../providers/contract.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import type { UpgradeResponse } from '../server/upgrade.js'
import { offeredSubprotocols, OriginGuard, UpgradeGuard } from '../server/ws-adapter.js'
import { REALTIME } from './realtime.endpoint.js'
import { RealtimeService } from './realtime.service.js'

/** Prefix of the subprotocol that carries the key: browsers cannot set headers on a WebSocket. It is never selected. */
const KEY_PREFIX = 'openai-insecure-api-key.'

/** Authenticates an upgrade, by `Authorization` or by the key among the offered subprotocols, and checks the key's limits. */
@Injectable()
class RealtimeKeyGuard implements CanActivate {
  constructor(
    private readonly keys: KeyTable,
    private readonly limits: RateLimiter,
  ) {}

  canActivate(context: ExecutionContext): true | Promise<true> {
    const request = context.switchToHttp().getRequest<IncomingMessage>()
    const call = contextOf(request)
    call.caller = this.keys.identify(keyOf(request))
    return this.limits.begin(call, true)
  }
}

function keyOf(request: IncomingMessage): string {
  const { authorization = '' } = request.headers
  const offered = offeredSubprotocols(request)
    .filter((name) => name.startsWith(KEY_PREFIX))
    .map((name) => plainKey(name.slice(KEY_PREFIX.length)))
  const keys = new Set(authorization === '' ? offered : [readKey(request.headers, false), ...offered])
  const [key] = keys
  if (keys.size > 1) throw new GatewayError('key_malformed', 'Different API keys were sent. Send one.')
  return key ?? readKey(request.headers, false)
}

/** The query of an upgrade as a controller receives it: what kind of session, its model, and the rest. */
const openingParameter = createParamDecorator((_data, context) =>
  openingOf(context.switchToHttp().getRequest<Request>().url),
)

function Opening(): ParameterDecorator {
  return openingParameter()
}

/** What a query may say; an upstream may read them in other spellings, too. */
const QUERY_NAMES = ['model', 'intent', 'call_id'] as const
const queryNames = new MemberNames(QUERY_NAMES)

const TRANSCRIPTION_INTENT = 'transcription'

/**
 * Throws `invalid_request` unless the query names one model, or is for a transcription session, and says nothing that it
 * knows twice or in another spelling.
 */
function openingOf(url: string): RealtimeOpening {
  const entries = [...new URLSearchParams(/\?(.*)$/s.exec(url)?.[1] ?? '')]
  const ambiguity = queryNames.ambiguity(Object.fromEntries(entries), '')
  if (ambiguity !== undefined) throw wrongQuery(ambiguity)
  for (const path of QUERY_NAMES) {
    if (entries.filter(([name]) => name === path).length < 2) continue
    throw wrongQuery({ path, code: 'duplicate_key', message: `Invalid '${path}': it must stand in the query once.` })
  }
  const { model, ...others } = Object.fromEntries(entries)
  // Upstreams read it in any case: none may open a session of another kind than the one that is authorised here.
  const kind = others['intent']?.toLowerCase() === TRANSCRIPTION_INTENT ? 'transcription' : 'conversation'
  if (model === undefined && kind === 'transcription') return { kind, model, query: others }
  if (model === undefined) {
    const message = "Missing required parameter: 'model' (in the query)."
    throw wrongQuery({ path: 'model', code: 'missing_required_parameter', message })
  }
  if (model.trim() === '') {
    throw wrongQuery({ path: 'model', code: 'empty_string', message: "Invalid 'model': it must not be empty." })
  }
  return { kind, model, query: others }
}

const wrongQuery = ({ path, code, message }: FieldError): GatewayError =>
  new GatewayError('invalid_request', message, { param: path, code })

/** The HTTP phase of a session: an upgrade is checked, connected to its upstream and refused like any other request. */
@Controller()
export class RealtimeController {
  constructor(private readonly realtime: RealtimeService) {}

  @Endpoint(REALTIME, [UpgradeGuard, OriginGuard, RealtimeKeyGuard])
  open(@Opening() opening: RealtimeOpening, @CurrentRequest() call: RequestContext): Promise<UpgradeResponse> {
    return this.realtime.open(opening, call)
  }
}
