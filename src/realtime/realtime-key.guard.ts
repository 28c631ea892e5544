import type { IncomingMessage } from 'node:http'
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common'
import { plainKey, readKey } from '../auth/bearer.js'
import { KeyTable } from '../auth/key-table.js'
import { GatewayError } from '../core/gateway-error.js'
import { callOf } from '../core/request-context.js'
import { LimitGate } from '../limits/rate-limiter.js'
import { offeredSubprotocols } from '../server/subprotocols.js'

/** Browsers cannot set headers on a socket: their clients offer the key as a subprotocol, which is never chosen. */
const KEY_PREFIX = 'openai-insecure-api-key.'

/** Decides who opens a session, by `Authorization` or by the key among the offered subprotocols, and whether they may. */
@Injectable()
export class RealtimeKeyGuard implements CanActivate {
  constructor(
    private readonly keys: KeyTable,
    private readonly limits: LimitGate,
  ) {}

  canActivate(context: ExecutionContext): true | Promise<true> {
    const request = context.switchToHttp().getRequest<IncomingMessage>()
    const call = callOf(request)
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
