import { expect } from '@jest/globals'
import type { WebSocket } from 'ws'
import { GatewayError } from '../../src/core/gateway-error.js'
import type { Call } from '../../src/core/request-context.js'
import { P2Session } from '../../src/providers/p2/p2-socket.js'
import { UpstreamSockets } from '../../src/upstream/upstream-sockets.js'
import { RecordingSink } from './byte-streams.js'
import { eventually } from './eventually.js'
import { type P2Upstream, startP2Upstream } from './p2-upstream.js'
import { GENEROUS_TIMEOUTS, newCall } from './raw-upstream.js'

export const MAXIMUM_MESSAGE_BYTES = 1_000_000
export const REQUEST = Buffer.from('a request')

export interface Begun {
  readonly session: P2Session
  readonly sink: RecordingSink
  readonly socket: WebSocket
  readonly call: Call
  readonly ended: () => Promise<void>
}

export interface BeginOptions {
  readonly timeouts?: object
  readonly totalMs?: number
  readonly call?: Call
  readonly sampleBytes?: number
}

/** Sessions on an upstream that does what a test says. */
export class P2SessionLab {
  sockets = new UpstreamSockets()
  upstream: P2Upstream | undefined

  /** A session on an upstream that sends these messages in answer to the request, or does what it likes. */
  readonly begin = async (
    answer: readonly Buffer[] | ((socket: WebSocket) => void),
    { timeouts = {}, totalMs = 20_000, call = newCall(), ...terms }: BeginOptions = {},
  ): Promise<Begun> => {
    this.upstream = await startP2Upstream((socket) => {
      if (typeof answer === 'function') answer(socket)
      else for (const message of answer) socket.send(message)
    })
    const deadlineAtMs = performance.now() + totalMs
    const request = { path: '/', headers: {}, maximumMessageBytes: MAXIMUM_MESSAGE_BYTES }
    const { socket } = await this.sockets.dial(request, this.upstream.target, call, deadlineAtMs)
    if (socket === undefined) throw new Error('refused')
    // The dial has counted its own time.
    call.log.upstreamMs = 0
    const session = new P2Session(socket, REQUEST, {
      call,
      deadlineAtMs,
      timeouts: { ...GENEROUS_TIMEOUTS, ...timeouts },
      refusal: (code, text) => new GatewayError('conflict', `${code} ${text}`),
      ...terms,
    })
    const sink = new RecordingSink()
    session.start(sink)
    return { session, sink, socket, call, ended: () => eventually(() => sink.ending !== undefined) }
  }

  /** Nothing of a session stays behind at either end. */
  readonly expectNothingLeft = async ({ socket }: Begun): Promise<void> => {
    await eventually(() => socket.readyState === socket.CLOSED && this.upstream?.closeCodes.length === 1)
    // One listener of the door stays for errors, as long as the socket lives.
    expect(['message', 'close', 'error'].map((name) => socket.listenerCount(name))).toEqual([0, 0, 1])
  }

  /** Ends what runs, and makes ready for the next test. */
  async reset(): Promise<void> {
    this.sockets.onApplicationShutdown()
    await this.upstream?.close()
    this.upstream = undefined
    this.sockets = new UpstreamSockets()
  }
}
