import type { IncomingMessage } from 'node:http'
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common'
import { GatewayError } from '../core/gateway-error.js'
import { offeredSubprotocols } from './subprotocols.js'
import { findUpgrade } from './upgrade.js'

const VERSION = '13'

/** Base64 of 16 bytes. */
const KEY = /^[+/0-9A-Za-z]{22}==$/

/** What a 426 says of the protocol to come back with (RFC 9110, 15.5.22; RFC 6455, 4.4). */
const WANTED = { upgrade: 'websocket', 'sec-websocket-version': VERSION, connection: 'close, Upgrade' }

/** Lets whole WebSocket handshakes in and nothing else, so that after all other checks only the 101 is left to say. */
@Injectable()
export class UpgradeGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<IncomingMessage>()
    const { headers } = request
    if (findUpgrade(request) === undefined) throw upgradeRequired('This path answers WebSocket connections only.')
    if (headers['sec-websocket-version'] !== VERSION) {
      throw upgradeRequired(`The header Sec-WebSocket-Version must be ${VERSION}.`)
    }
    if (!KEY.test(headers['sec-websocket-key'] ?? '')) {
      throw new GatewayError('invalid_request', 'The header Sec-WebSocket-Key must be the base64 of 16 bytes.', {
        param: 'sec-websocket-key',
      })
    }
    // Its bytes would be taken for the first of the new protocol.
    if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) {
      throw new GatewayError('invalid_request', 'A WebSocket handshake has no body.', { param: 'content-length' })
    }
    offeredSubprotocols(request)
    return true
  }
}

const upgradeRequired = (message: string): GatewayError =>
  new GatewayError('upgrade_required', message, { headers: WANTED })
