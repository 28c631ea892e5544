import type { IncomingMessage } from 'node:http'
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common'
import { WsAdapter } from '@nestjs/platform-ws'
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/errors.js'
import { findContext } from '../core/request-context.js'
import { allowsOrigin, forbiddenOrigin, isOwnOrigin } from './cors.js'
import { originForm, pathOf } from './request-target.js'
import type { GatewayHttpAdapter } from './http-adapter.js'
import { writeExplainHeaders } from './response-headers.js'
import { findUpgrade, type PendingUpgrade, type UpgradeResponse, type UpgradeHandler } from './upgrade.js'

/**
 * Browsers ask no server before they open a socket to it; they only say from which page. Programs send no `Origin` and
 * pass; a page passes when this gateway has served it, or `server.cors.allowedOrigins` allows its origin.
 */
@Injectable()
export class OriginGuard implements CanActivate {
  constructor(private readonly store: ConfigStore) {}

  canActivate(context: ExecutionContext): boolean {
    const { origin, host } = context.switchToHttp().getRequest<IncomingMessage>().headers
    const { cors } = this.store.current.server
    if (origin === undefined || isOwnOrigin(origin, host) || allowsOrigin(cors, origin)) return true
    throw forbiddenOrigin()
  }
}

/** A token of RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * The subprotocols a client offers, in its order; none when it sent no such header. Throws `invalid_request` when the
 * header is not a list of different tokens (RFC 6455, 11.3.4). Browsers hide keys in it: it is never shown or logged.
 */
export function offeredSubprotocols({ headers }: Pick<IncomingMessage, 'headers'>): readonly string[] {
  const header = headers['sec-websocket-protocol']
  if (header === undefined) return []
  const offered = header.split(',').map(withoutBlanks)
  if (offered.every((name) => TOKEN.test(name)) && new Set(offered).size === offered.length) return offered
  throw new GatewayError('invalid_request', 'The header Sec-WebSocket-Protocol must list different tokens.', {
    param: 'sec-websocket-protocol',
  })
}

/** A pattern for the blanks at the end would try each blank of a header that is full of them. */
function withoutBlanks(name: string): string {
  let [start, end] = [0, name.length]
  while (isBlank(name[start])) start++
  while (end > start && isBlank(name[end - 1])) end--
  return name.slice(start, end)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

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

/** What `@WebSocketGateway` says of a gateway. */
export interface SocketGatewayOptions {
  readonly path: string
  /** Chosen when the client offers it; no other ever is. */
  readonly subprotocol: string
}

export interface SocketLimits {
  /** A longer message ends the connection (1009). */
  readonly messageBytes: number
  /** Of one message; more end the connection (1008). */
  readonly fragments: number
}

/** How long a client may take to agree to a closing; the library's own default is half a minute. */
const CLOSE_TIMEOUT_MS = 5_000

/** Not in the library's types yet. */
interface CloseOptions extends ServerOptions {
  readonly closeTimeout: number
}

/**
 * Nest's gateways on `ws`, with nothing accepted by itself: an upgrade comes through the routes like any request, and
 * only when a controller has said yes (`UpgradeAnswer`) is the 101 written here and the gateway given the socket.
 */
export class GatewayWsAdapter extends WsAdapter implements UpgradeHandler {
  private readonly servers = new Map<string, WebSocketServer>()

  constructor(
    http: GatewayHttpAdapter,
    private readonly limits: () => SocketLimits,
  ) {
    super(http.getHttpServer())
    http.serveUpgrades(this)
  }

  override create(_port: number, { path, subprotocol }: SocketGatewayOptions): WebSocketServer {
    const options: CloseOptions = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      closeTimeout: CLOSE_TIMEOUT_MS,
      handleProtocols: (offered) => offered.has(subprotocol) && subprotocol,
    }
    const server = new WebSocketServer(options)
    server.on('headers', addCallHeaders)
    this.servers.set(path, server)
    return server
  }

  /** Gateways read their sockets themselves: Nest's reader parses every message and drops what it cannot parse. */
  override bindMessageHandlers(): void {
    // Nothing is bound.
  }

  wants(request: IncomingMessage): boolean {
    const { headers, httpVersionMinor, method, url = '' } = request
    if (method !== 'GET' || httpVersionMinor === 0 || headers.upgrade?.toLowerCase() !== 'websocket') return false
    return this.servers.has(pathOf(originForm(url)))
  }

  take(upgrade: PendingUpgrade, { handover, abandon }: UpgradeResponse): void {
    const { request } = upgrade
    const server = this.servers.get(pathOf(request.url ?? ''))
    if (server === undefined || upgrade.isGone) {
      abandon()
      return
    }
    const { messageBytes: maxPayload, fragments: maxFragments } = this.limits()
    Object.assign(server.options, { maxPayload, maxFragments })
    const { socket, early } = upgrade.release()
    const opened: WebSocket[] = []
    // Called back at once, or not at all.
    server.handleUpgrade(request, socket, early, (client) => opened.push(client))
    const [client] = opened
    const finish = (): void => {
      upgrade.finish()
    }
    if (client === undefined) {
      abandon()
      finish()
      return
    }
    // An `error` is followed by `close`, which is what gateways go by.
    client.on('error', () => undefined)
    server.emit('connection', client, request, handover, finish)
  }
}

/** The 101 is written by the library, past the response that carries a call's own headers otherwise. */
function addCallHeaders(lines: string[], request: IncomingMessage): void {
  const call = findContext(request)
  if (call === undefined) return
  const headers = call.ownHeaders()
  if (call.isExplained) writeExplainHeaders(call, headers)
  for (const [name, value] of Object.entries(headers)) {
    if (name !== 'connection') lines.push(`${name}: ${value}`)
  }
}
