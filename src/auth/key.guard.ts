import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common'
import type { Request } from 'express'
import { callOf } from '../core/request-context.js'
import { LimitGate } from '../limits/rate-limiter.js'
import { readKey } from './bearer.js'
import { KeyTable } from './key-table.js'

/** Clients of the messages family send `x-api-key`, to list models as well. */
const API_KEY_HEADER_PATHS = /^\/v1\/(?:messages|models)(?:\/|$)/

/**
 * Decides from the headers alone, before a byte of the body is read, who calls, and whether their limits allow it.
 * Synchronous for callers without limits: an asynchronous guard costs a tenth of a relayed call.
 */
@Injectable()
export class KeyGuard implements CanActivate {
  constructor(
    private readonly keys: KeyTable,
    private readonly limits: LimitGate,
  ) {}

  canActivate(context: ExecutionContext): true | Promise<true> {
    const request = context.switchToHttp().getRequest<Request>()
    const call = callOf(request)
    call.caller = this.keys.identify(readKey(request.headers, API_KEY_HEADER_PATHS.test(call.path)))
    return this.limits.begin(call)
  }
}
