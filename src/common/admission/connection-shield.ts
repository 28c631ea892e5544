import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { readSimpleRequest, type SimpleRequest } from './simple-request.js'

/** Who decides about requests, as a shield sees it. */
export interface ShieldedDoor {
  /** While it is false no request is refused, and shields are in the way. */
  readonly isRefusing: boolean
  /** The whole answer of a refused request as it goes over the wire; undefined when it is let in. */
  refusalText(request: SimpleRequest): string | undefined
  /** Hands bytes to the server's parser; the request they are is let in. */
  letIn(parse: () => void): void
  /** The answer to the last request that the parser read from a connection. */
  lastAnswer(socket: Socket): ServerResponse | undefined
}

/**
 * Stands between a kept-alive connection and the server's parser while requests are refused, and answers those that are
 * refused by itself. A refusal through the parser, with a request and a response made for it, costs twice as much; what
 * refusals cost is missing to those that are let in.
 *
 * Only bytes that are one whole ordinary request are looked at, between two requests of the connection. Whatever else
 * comes goes to the parser, and the shield is gone.
 */
export class ConnectionShield {
  private constructor(
    private readonly socket: Socket,
    private readonly parse: (chunk: Buffer) => void,
    private readonly door: ShieldedDoor,
  ) {}

  /** Shields a connection that is between two requests; any other is left as it is. */
  static raise(socket: Socket, door: ShieldedDoor): void {
    const [parse, ...others] = socket.listeners('data') as ((chunk: Buffer) => void)[]
    if (parse === undefined || others.length > 0 || socket.destroyed || !isFree(door.lastAnswer(socket))) return
    const shield = new ConnectionShield(socket, parse, door)
    // Node's parser reads past JavaScript; it lets go of the connection when somebody listens to it (`unconsume`).
    socket.on('data', shield.onData).removeListener('data', parse)
  }

  private readonly onData = (chunk: Buffer): void => {
    const { door, socket } = this
    const isBetween = socket.writableLength === 0 && isFree(door.lastAnswer(socket))
    const request = isBetween && door.isRefusing ? readSimpleRequest(chunk) : undefined
    if (request === undefined) {
      this.#lower()
      this.parse(chunk)
      return
    }
    const refusal = door.refusalText(request)
    if (refusal !== undefined) {
      socket.write(refusal, 'latin1')
      return
    }
    door.letIn(() => {
      this.parse(chunk)
    })
  }

  #lower(): void {
    this.socket.on('data', this.parse).removeListener('data', this.onData)
  }
}

/** Request and answer are over, and the connection goes on. */
const isFree = (answer: ServerResponse | undefined): boolean =>
  answer?.shouldKeepAlive === true && answer.writableFinished && answer.socket === null && answer.req.complete
