import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { readIntoSharedMemory } from './shared-read-memory.js'
import { readSimpleRequest, type SimpleRequest } from './simple-request.js'

/** Who decides about requests, as a shield sees it. */
export interface ShieldedDoor {
  /** While it is false no request is refused, and shields are in the way. */
  readonly isRefusing: boolean
  /** The whole answer of a refused request as it goes over the wire; undefined when it is let in. */
  refusalText(request: SimpleRequest): string | undefined
  /** Hands bytes to the server's parser; the request they are is let in. */
  letIn(parse: () => void): void
  /** The answer to the last request that the parser read from a connection; undefined once it is over. */
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
  private isUp = true

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
    socket.on('data', shield.look).removeListener('data', parse)
    readIntoSharedMemory(socket, shield.take)
  }

  /** What was read into memory that is not ours to keep. */
  private readonly take = (bytes: Buffer): boolean => {
    if (!this.isUp) return this.socket.push(Buffer.from(bytes))
    this.look(bytes)
    return true
  }

  private readonly look = (bytes: Buffer): void => {
    const { door, socket } = this
    const isBetween = socket.writableLength === 0 && isFree(door.lastAnswer(socket))
    const request = isBetween && door.isRefusing ? readSimpleRequest(bytes) : undefined
    if (request === undefined) {
      this.#lower()
      this.parse(Buffer.from(bytes))
      return
    }
    const refusal = door.refusalText(request)
    if (refusal !== undefined) {
      socket.write(refusal, 'latin1')
      return
    }
    door.letIn(() => {
      this.parse(Buffer.from(bytes))
    })
  }

  #lower(): void {
    this.isUp = false
    this.socket.on('data', this.parse).removeListener('data', this.look)
  }
}

/** Request and answer are over, and the connection goes on. */
const isFree = (answer: ServerResponse | undefined): boolean =>
  answer === undefined ||
  (answer.shouldKeepAlive && answer.writableFinished && answer.socket === null && answer.req.complete)
