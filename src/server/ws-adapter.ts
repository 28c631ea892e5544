import type { IncomingMessage } from 'node:http'
import { WsAdapter } from '@nestjs/platform-ws'
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import { findCall } from '../core/request-context.js'
import { explain } from './explanation.js'
import type { GatewayHttpAdapter } from './http-adapter.js'
import { originForm, pathOf } from './request-target.js'
import type { UpgradeAnswer, UpgradeTaker } from './upgrade-answer.js'
import type { PendingUpgrade } from './upgrade.js'

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
export class GatewayWsAdapter extends WsAdapter implements UpgradeTaker {
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

  take(upgrade: PendingUpgrade, { handover, abandon }: UpgradeAnswer): void {
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
  const call = findCall(request)
  if (call === undefined) return
  const headers = { ...call.answerHeaders }
  if (call.isExplained) explain(call, headers)
  for (const [name, value] of Object.entries(headers)) {
    if (name !== 'connection') lines.push(`${name}: ${value}`)
  }
}
