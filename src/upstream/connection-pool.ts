import type { Socket } from 'node:net'
import { buildConnector, errors } from 'undici'
import { Connection, IdleLimit, type ResponseReader } from './connection.js'
import type { OutgoingRequest } from './http-request.js'

/** The socket is there before it is connected, which the types of undici do not say. */
type Connect = (...parameters: Parameters<buildConnector.connector>) => Socket

/** So often connections are closed that are idle for too long. */
const SWEEP_MS = 1_000

interface PoolOptions {
  readonly connect: buildConnector.BuildOptions
  readonly limit?: IdleLimit
  /** False: each request has a connection of its own, which ends with it. */
  readonly keepsIdle?: boolean
}

/** Connections to one origin, as many as requests need at once. The one that was used last is used first. */
export class ConnectionPool {
  readonly limit: IdleLimit
  /** As the header says it. */
  readonly host: string
  private readonly idle: Connection[] = []
  private readonly busy = new Set<Connection>()
  private readonly target: Pick<buildConnector.Options, 'hostname' | 'host' | 'protocol' | 'port'>
  private readonly connect: Connect
  private readonly keepsIdle: boolean
  private isClosed = false
  private isDestroyed = false
  private sweeper: NodeJS.Timeout | undefined
  private readonly ended: Promise<void>
  private resolveEnded: () => void = () => undefined

  constructor(origin: string, { connect, limit = new IdleLimit(), keepsIdle = true }: PoolOptions) {
    const { hostname, host, protocol, port } = new URL(origin)
    this.host = host
    // Node resolves names; an IPv6 address has no brackets for it.
    this.target = { hostname: hostname.replace(/^\[(.*)\]$/, '$1'), host, protocol, port }
    this.connect = buildConnector(connect) as Connect
    this.limit = limit
    this.keepsIdle = keepsIdle
    this.ended = new Promise((resolve) => {
      this.resolveEnded = resolve
    })
  }

  /** `isNewNeeded`: a connection that was used before has failed, and another one of them may fail as well. */
  dispatch(request: OutgoingRequest, reader: ResponseReader, isNewNeeded = false): void {
    if (this.isDestroyed) {
      reader.onResponseError(new errors.ClientDestroyedError(), false)
      return
    }
    const beginsAtMs = isNewNeeded ? this.limit.nowMs() : reader.startedAtMs
    const connection = isNewNeeded ? undefined : this.takeIdle(beginsAtMs)
    if (connection === undefined) this.open(request, reader, beginsAtMs)
    else connection.send(request, reader, beginsAtMs)
  }

  /** Resolves when the requests that run have ended; each connection ends with its request. */
  close(): Promise<void> {
    this.isClosed = true
    for (const connection of [...this.idle]) connection.end(new errors.ClientClosedError())
    this.settle()
    return this.ended
  }

  /** Fails the requests that run. */
  destroy(): Promise<void> {
    this.isDestroyed = true
    const error = new errors.ClientDestroyedError()
    for (const connection of [...this.busy]) connection.end(error)
    return this.close()
  }

  /** A connection without a request; false where it is not to be used again. */
  keep(connection: Connection): boolean {
    if (this.isClosed || !this.keepsIdle) return false
    this.busy.delete(connection)
    this.idle.push(connection)
    this.sweeper ??= setTimeout(this.sweep, SWEEP_MS).unref()
    return true
  }

  forget(connection: Connection): void {
    this.busy.delete(connection)
    const index = this.idle.indexOf(connection)
    if (index !== -1) this.idle.splice(index, 1)
    this.settle()
  }

  private open(request: OutgoingRequest, reader: ResponseReader, beginsAtMs: number): void {
    const socket = this.connect(this.target, (...[error]) => {
      // A failure reaches the connection by its socket.
      if (error === null) connection.send(request, reader, beginsAtMs)
    })
    const connection = new Connection(socket, this)
    this.busy.add(connection)
    connection.expect(reader)
  }

  private takeIdle(nowMs: number): Connection | undefined {
    for (let connection = this.idle.pop(); connection !== undefined; connection = this.idle.pop()) {
      if (connection.isUsable(nowMs)) {
        this.busy.add(connection)
        return connection
      }
      connection.end(new errors.InformationalError('idle for too long'))
    }
    return undefined
  }

  private readonly sweep = (): void => {
    this.sweeper = undefined
    const nowMs = this.limit.nowMs()
    for (const connection of [...this.idle])
      if (!connection.isUsable(nowMs)) connection.end(new errors.InformationalError('idle for too long'))
    if (this.idle.length > 0) this.sweeper = setTimeout(this.sweep, SWEEP_MS).unref()
  }

  private settle(): void {
    if (this.isClosed && this.busy.size === 0) this.resolveEnded()
  }
}
