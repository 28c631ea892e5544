import { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'

/** Node forgets sockets that left HTTP; this one still counts them among its connections when it closes all. */
export class UpgradableServer extends Server {
  /** Those whose request to leave is being decided. */
  private readonly leaving = new Set<Duplex>()
  private readonly upgraded = new Set<Duplex>()

  /** The server is answerable for a socket from here on, whoever speaks what over it. */
  adopt(socket: Duplex): void {
    this.leaving.add(socket)
    socket.once('close', () => {
      this.leaving.delete(socket)
      this.upgraded.delete(socket)
    })
  }

  /** An adopted socket speaks something else now, and whoever speaks it can end it in its own way. */
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
 * Requests that leave HTTP only where somebody waits for them. A Node server that listens to upgrades is given every
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
