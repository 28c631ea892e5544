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

const SHIELDED = Symbol('shielded')

type ShieldedSocket = Socket & { [SHIELDED]?: boolean }

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
  private idleTimeoutMs = 0
  private idleTimer: NodeJS.Timeout | undefined
  private wasUsed = false

  private constructor(
    private readonly socket: ShieldedSocket,
    private readonly parse: (chunk: Buffer) => void,
    private readonly door: ShieldedDoor,
  ) {}

  /** Shields a connection that is between two requests and is not shielded yet; any other is left as it is. */
  static raise(socket: ShieldedSocket, door: ShieldedDoor): void {
    const [parse, ...others] = socket.listeners('data') as ((chunk: Buffer) => void)[]
    if (parse === undefined || others.length > 0 || socket[SHIELDED] === true) return
    if (socket.destroyed || door.lastAnswer(socket) !== undefined) return
    const shield = new ConnectionShield(socket, parse, door)
    socket[SHIELDED] = true
    // Node's parser reads past JavaScript; it lets go of the connection when somebody listens to it (`unconsume`).
    socket.on('data', shield.look).removeListener('data', parse)
    socket.once('close', shield.resumeIdleTimeout)
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
    const isBetween = socket.writableLength === 0 && door.lastAnswer(socket) === undefined
    const request = isBetween && door.isRefusing ? readSimpleRequest(bytes) : undefined
    if (request === undefined) {
      this.#lower()
      this.parse(Buffer.from(bytes))
      return
    }
    const refusal = door.refusalText(request)
    if (refusal !== undefined) {
      this.#suspendIdleTimeout()
      socket.write(refusal, 'latin1')
      return
    }
    this.resumeIdleTimeout()
    door.letIn(() => {
      this.parse(Buffer.from(bytes))
    })
  }

  #lower(): void {
    const { socket } = this
    this.isUp = false
    socket[SHIELDED] = false
    this.resumeIdleTimeout()
    socket.on('data', this.parse).removeListener('data', this.look).removeListener('close', this.resumeIdleTimeout)
  }

  /**
   * Node puts a connection to the end of a list of thousands at every read and every write, which is a tenth of what a
   * refusal costs. The shield only notes that the connection was used; a silent one is closed a little later for it,
   * after less than twice the time.
   */
  #suspendIdleTimeout(): void {
    this.wasUsed = true
    const { timeout = 0 } = this.socket
    if (timeout === 0) return
    this.idleTimeoutMs = timeout
    this.socket.setTimeout(0)
    this.idleTimer = setInterval(this.lookAtUse, timeout).unref()
  }

  private readonly resumeIdleTimeout = (): void => {
    if (this.idleTimer === undefined) return
    clearInterval(this.idleTimer)
    this.idleTimer = undefined
    this.socket.setTimeout(this.idleTimeoutMs)
  }

  private readonly lookAtUse = (): void => {
    const { wasUsed } = this
    this.wasUsed = false
    if (wasUsed) return
    this.resumeIdleTimeout()
    this.socket.emit('timeout')
  }
}
