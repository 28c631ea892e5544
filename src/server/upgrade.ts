import { once } from 'node:events'
import { IncomingMessage, Server, type ServerResponse } from 'node:http'
import { createServer, type Server as Acceptor, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Node forgets sockets that left HTTP; this one still counts them among its connections when it closes all. */
export class UpgradableServer extends Server {
  /** Those whose request to leave is being decided. */
  private readonly leaving = new Set<Duplex>()
  private readonly upgraded = new Set<Duplex>()
  private readonly acceptors: Acceptor[] = []

  /**
   * Accepts connections by another handle of its listening socket, too (`acceptors.ts`). `backlog`: of that socket, as the call sets
   * it anew.
   */
  acceptWith(handle: unknown, backlog: number): void {
    const acceptor = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.emit('connection', socket)
    })
    acceptor.on('error', ignore).listen(handle, backlog)
    if (this.listening) this.acceptors.push(acceptor)
    else acceptor.close()
  }

  /** By which it accepts connections. */
  get handles(): number {
    return 1 + this.acceptors.length
  }

  /** As in Node: no new connections; `callback` is called once the last one has ended, whichever handle accepted it. */
  override close(callback?: (error?: Error) => void): this {
    const closed = this.acceptors.map((acceptor) => once(acceptor, 'close'))
    for (const acceptor of this.acceptors.splice(0)) acceptor.close()
    return super.close((error) => {
      void Promise.all(closed).then(() => callback?.(error))
    })
  }

  /** The server is responsible for the socket from here on, whatever its protocol. */
  adopt(socket: Duplex): void {
    this.leaving.add(socket)
    socket.once('close', () => {
      this.leaving.delete(socket)
      this.upgraded.delete(socket)
    })
  }

  /** The owner of an adopted socket can end it in the way of its protocol. */
  handOver(socket: Duplex): void {
    if (this.leaving.delete(socket)) this.upgraded.add(socket)
  }

  /** Cuts all requests under way, those to leave HTTP included; not the sockets that have left it. */
  closeAllRequests(): void {
    super.closeAllConnections()
    for (const socket of this.leaving) socket.destroy()
  }

  override closeAllConnections(): void {
    this.closeAllRequests()
    for (const socket of this.upgraded) socket.destroy()
  }
}

/**
 * Requests that leave HTTP, only where they have a listener. A Node server that listens to upgrades is given every
 * request with such an offer as a bare socket, its body unread: also the plain POST of a client that would rather have
 * spoken HTTP/2 (`Upgrade: h2c`). The parser decides by this property; later versions of Node have an option instead.
 * `onOver` is called with the connection of a request that has been read to its end, or given up.
 */
export function upgradableRequests(
  wants: (request: IncomingMessage) => boolean,
  onOver: (socket: Duplex) => void,
): typeof IncomingMessage {
  return class UpgradableRequest extends IncomingMessage {
    declare private offersUpgrade: boolean

    get upgrade(): boolean {
      return this.offersUpgrade && (this.method === 'CONNECT' || wants(this))
    }

    set upgrade(offered: boolean | null) {
      this.offersUpgrade = offered === true
    }

    override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
      super._destroy(error, callback)
      onOver(this.socket)
    }
  }
}

/** What a client may send before it is asked to; the rest waits in its own socket. */
const EARLY_BYTES = 65_536

/** A refused client that still sends is listened to this long, so that no reset overtakes the refusal. */
const LINGER_MS = 1_000

const SWITCHING_PROTOCOLS = 101

/**
 * A request to leave HTTP, while it is decided. Node has given its socket away already; here it gets an ordinary
 * response back, so that routes, guards and the exception filter judge and answer it like any other request.
 */
export class PendingUpgrade {
  private readonly early: Buffer[] = []
  private earlyBytes = 0

  constructor(
    readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly socket: Socket,
    head: Buffer,
  ) {
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once('finish', this.onResponded)
    // A socket that is not read never reports that its client has left.
    socket.on('error', ignore).on('end', this.onEnd).on('data', this.onEarlyData)
    if (head.length > 0) this.onEarlyData(head)
  }

  /** True once the client is gone. */
  get isGone(): boolean {
    return this.socket.destroyed || !this.socket.writable
  }

  /** Gives the socket, and what the client sent early, to the owner of the new protocol. */
  release(): { readonly socket: Socket; readonly early: Buffer } {
    const { socket } = this
    this.letGo()
    this.response.removeListener('finish', this.onResponded)
    this.response.statusCode = SWITCHING_PROTOCOLS
    // It may have been paused; its next reader starts in this very turn.
    socket.removeListener('error', ignore).resume()
    return { socket, early: Buffer.concat(this.early) }
  }

  /** The conversation in the new protocol is over, and the call with it. */
  finish(): void {
    this.response.emit('close')
  }

  private readonly onEarlyData = (chunk: Buffer): void => {
    this.early.push(chunk)
    this.earlyBytes += chunk.length
    if (this.earlyBytes > EARLY_BYTES) this.socket.pause()
  }

  /** Half a connection carries no conversation. */
  private readonly onEnd = (): void => {
    this.socket.destroy()
  }

  /** Refused: the connection ends as Node would end it, but for the client's early bytes, which are read and dropped. */
  private readonly onResponded = (): void => {
    const { socket } = this
    this.letGo()
    this.early.length = 0
    this.response.emit('close')
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => {
      clearTimeout(timer)
    })
    socket.resume().end()
  }

  private letGo(): void {
    this.socket.removeListener('data', this.onEarlyData).removeListener('end', this.onEnd)
    this.response.detachSocket(this.socket)
  }
}

const ignore = (): void => undefined

const UPGRADE = Symbol('upgrade')

interface UpgradeHolder {
  [UPGRADE]?: PendingUpgrade
}

export function attachUpgrade(request: IncomingMessage, upgrade: PendingUpgrade): void {
  ;(request as IncomingMessage & UpgradeHolder)[UPGRADE] = upgrade
}

/** The upgrade that a request asks for; undefined for a request that is only a request. */
export const findUpgrade = (request: IncomingMessage): PendingUpgrade | undefined =>
  (request as IncomingMessage & UpgradeHolder)[UPGRADE]

/** What a controller hands back to say yes to an upgrade. */
export class UpgradeResponse {
  constructor(
    /** Given with the open socket to its new owner. */
    readonly handover: object,
    /** Called instead when there is no conversation to be held any more: lets go of all that was prepared. */
    readonly abandon: () => void,
  ) {}
}

/** Knows the paths at which upgrades are served, and takes over the sockets of those that were said yes to. */
export interface UpgradeHandler {
  /** Asked for each request that offers to leave HTTP; all others stay plain requests, whatever they offered. */
  wants(request: IncomingMessage): boolean
  take(upgrade: PendingUpgrade, answer: UpgradeResponse): void
}
