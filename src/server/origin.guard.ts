import type { IncomingMessage } from 'node:http'
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'

/**
 * Browsers ask no server before they open a socket to it; they only say from which page. Programs send no `Origin` and
 * pass; a page passes when `server.allowedOrigins` names its origin.
 */
@Injectable()
export class OriginGuard implements CanActivate {
  constructor(private readonly store: ConfigStore) {}

  canActivate(context: ExecutionContext): boolean {
    const { origin } = context.switchToHttp().getRequest<IncomingMessage>().headers
    const { allowedOrigins = [] } = this.store.current.server
    if (origin === undefined || allowedOrigins.includes('*') || allowedOrigins.includes(origin)) return true
    throw new GatewayError('forbidden_origin', 'Pages of this origin may not connect here.')
  }
}
