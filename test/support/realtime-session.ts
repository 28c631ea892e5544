import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import type { RealtimeLimits } from '../../src/config/settings.js'
import type { Quota, Reservation } from '../../src/core/quota.js'
import { RequestContext } from '../../src/core/request-context.js'
import { type ResponseUsage, UsageRecorder } from '../../src/core/usage-record.js'
import { ClientDialect, type RealtimeDialect } from '../../src/dialects/realtime/dialect.js'
import { type SessionContext, SessionTraffic } from '../../src/realtime/session-context.js'
import { RealtimeSession } from '../../src/realtime/session.js'
import type { SessionSocket } from '../../src/realtime/socket.js'

/** The two ends of one WebSocket over the loopback interface. */
export interface SocketPair {
  /** Accepted by the server. */
  readonly server: WebSocket
  /** Dialled. */
  readonly client: WebSocket
}

export interface PairOptions {
  /** The end that the gateway gets: paused, and without a listener for errors. */
  readonly near: 'server' | 'client'
  /** Whether the other end, which is the test's, answers pings. */
  readonly autoPong?: boolean
}

export interface SocketPairs {
  open(options: PairOptions): Promise<SocketPair>
  close(): Promise<void>
}

/** What accepted sockets are limited to. */
export interface ServerLimits {
  readonly maxFragments?: number
  readonly maxPayload?: number
}

export async function startSocketPairs(limits: ServerLimits = {}): Promise<SocketPairs> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const acceptorWith = (autoPong: boolean): WebSocketServer =>
    new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, autoPong, ...limits })
  const [answering, silent] = [acceptorWith(true), acceptorWith(false)]
  const waiting = new Map<string, (socket: WebSocket) => void>()
  listener.on('upgrade', (request, connection, head) => {
    const { url = '' } = request
    const acceptor = url.startsWith('/silent') ? silent : answering
    acceptor.handleUpgrade(request, connection, head, (socket) => waiting.get(url)?.(socket))
  })
  const opened: WebSocket[] = []
  let count = 0
  return {
    open: async ({ near, autoPong = true }) => {
      const url = `/${near === 'client' && !autoPong ? 'silent' : 'answering'}/${++count}`
      const accepted = new Promise<WebSocket>((resolve) => waiting.set(url, resolve))
      const client = new WebSocket(`ws://127.0.0.1:${port}${url}`, {
        perMessageDeflate: false,
        autoPong: near === 'client' || autoPong,
      })
      const isOpen = once(client, 'open').then(() => {
        if (near === 'client') client.pause()
      })
      const server = await accepted
      if (near === 'server') server.pause()
      await isOpen
      waiting.delete(url)
      opened.push(client, server)
      // Broken connections are what these tests are about.
      const far = near === 'client' ? server : client
      far.on('error', () => undefined)
      return { server, client }
    },
    close: async () => {
      for (const socket of opened) socket.terminate()
      const closed = once(listener, 'close')
      listener.close()
      await closed
    },
  }
}

export const SECRET = 'channel-secret-1234'

export const DEFAULT_LIMITS: RealtimeLimits = {
  realtimeAudioBytes: 15_728_640,
  realtimeFrameBytes: 22_020_096,
  realtimeFragments: 1024,
  realtimeEventsPerSecond: 500,
  realtimePingsPerSecond: 20,
  realtimePauseBytes: 1_048_576,
  realtimeCloseBytes: 4_194_304,
  realtimeBurstMs: 30_000,
  realtimeStuckMs: 10_000,
  realtimePingMs: 20_000,
  realtimeIdleMs: 300_000,
  realtimeAgeMs: 3_480_000,
}

export interface SessionOptions {
  readonly limits?: Partial<RealtimeLimits>
  /** `undefined` = not known from the handshake. */
  readonly clientDialect?: RealtimeDialect | undefined
  readonly upstreamDialect?: RealtimeDialect
  /** What the session was opened for, and with which names of models. */
  readonly opening?: Partial<Pick<SessionContext, 'kind' | 'model' | 'modelMap' | 'transcriptionModel'>>
  readonly record?: (entry: ResponseUsage) => void
  /** Answering pings, at the far ends. */
  readonly clientPongs?: boolean
  readonly upstreamPongs?: boolean
  /** Something that happens to the gateway's ends before the session has them. */
  readonly beforeStart?: (near: NearEnds) => Promise<void>
}

/** The gateway's own ends. */
export interface NearEnds {
  readonly client: SessionSocket
  readonly upstream: SessionSocket
}

/** What came to a far end. */
export interface FarEnd {
  readonly socket: SessionSocket
  readonly received: Buffer[]
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  /** The events so far, parsed. */
  events(): Record<string, unknown>[]
  /** Resolves when that many messages have come. */
  count(messages: number): Promise<void>
  send(event: unknown): void
}

export interface TestSession {
  readonly session: RealtimeSession
  readonly call: RequestContext
  readonly client: FarEnd
  readonly upstream: FarEnd
  readonly near: NearEnds
  readonly entries: ResponseUsage[]
  readonly warnings: unknown[]
}

export interface TestSessions {
  open(options?: SessionOptions): Promise<TestSession>
  close(): Promise<void>
}

class CollectingRecorder extends UsageRecorder {
  readonly taskEnded = (): void => undefined
  readonly settleTask = (): undefined => undefined

  constructor(readonly record: (entry: ResponseUsage) => void) {
    super()
  }
}

/** Sessions over real sockets: the far ends belong to the test. */
export async function startSessions(pairsWith: Parameters<typeof startSocketPairs>[0] = {}): Promise<TestSessions> {
  const pairs = await startSocketPairs(pairsWith)
  return { open: (options = {}) => openSession(pairs, options), close: () => pairs.close() }
}

async function openSession(pairs: SocketPairs, options: SessionOptions): Promise<TestSession> {
  const { limits = {}, clientDialect, upstreamDialect = 'beta', clientPongs = true, upstreamPongs = true } = options
  const clientPair = await pairs.open({ near: 'server', autoPong: clientPongs })
  const upstreamPair = await pairs.open({ near: 'client', autoPong: upstreamPongs })
  const call = new RequestContext('req_1', 'GET', '/v1/realtime', performance.now())
  const entries: ResponseUsage[] = []
  const warnings: unknown[] = []
  const session = new RealtimeSession(
    clientPair.server,
    { socket: upstreamPair.client, dialect: upstreamDialect },
    {
      call,
      requestId: call.requestId,
      clientDialect:
        clientDialect === undefined
          ? ClientDialect.ofHandshake({ betaHeader: undefined, protocols: [] })
          : ClientDialect.of(clientDialect),
      limits: { ...DEFAULT_LIMITS, ...limits },
      recorder: new CollectingRecorder(options.record ?? ((entry) => entries.push(entry))),
      traffic: new SessionTraffic(),
      keyId: 'team-a',
      kind: 'conversation',
      model: 'gpt-realtime',
      modelMap: {},
      transcriptionModel: () => ({ isServed: true, modelClass: 'stt-standard' }),
      ...options.opening,
      channelId: 'p1-main',
      credentials: SECRET,
      logger: { info: () => undefined, warn: (fields: unknown) => void warnings.push(fields) },
    },
  )
  const near = { client: clientPair.server, upstream: upstreamPair.client }
  const client = farEnd(clientPair.client)
  const upstream = farEnd(upstreamPair.server)
  await options.beforeStart?.(near)
  session.start()
  return { session, call, client, upstream, near, entries, warnings }
}

function farEnd(socket: SessionSocket): FarEnd {
  const received: Buffer[] = []
  let waiting: { readonly messages: number; readonly resolve: () => void } | undefined
  socket.on('message', (data) => {
    received.push(data as Buffer)
    if (waiting !== undefined && received.length >= waiting.messages) waiting.resolve()
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once('close', (code, reason) => {
      resolve({ code, reason: reason.toString() })
    })
  })
  return {
    socket,
    received,
    closed,
    events: () => received.map((message) => JSON.parse(message.toString()) as Record<string, unknown>),
    count: (messages) =>
      new Promise((resolve) => {
        if (received.length >= messages) resolve()
        else waiting = { messages, resolve }
      }),
    send: (event) => {
      socket.send(typeof event === 'string' ? event : JSON.stringify(event))
    },
  }
}

/** Limits that are counted elsewhere: every reservation waits until it is answered here. */
class SlowQuota implements Quota {
  /** Of the reservations that are waited for, the oldest first: with a refusal, or without. */
  readonly answer: ((refusal?: string) => void)[] = []

  reserveEstimate(): undefined {
    return undefined
  }

  reserve(): Promise<Reservation> {
    return new Promise((resolve) => {
      this.answer.push((refusal) => {
        resolve({
          refusal: refusal === undefined ? undefined : { limit: 'tokensPerMinute', message: refusal },
          settle: () => undefined,
        })
      })
    })
  }

  consume(): void {
    return undefined
  }

  exhaustedLimit(): undefined {
    return undefined
  }

  countRefusal(): void {
    return undefined
  }

  addHeaders(): void {
    return undefined
  }
}

class SilentRecorder extends UsageRecorder {
  readonly record = (): void => undefined
  readonly taskEnded = (): void => undefined
  readonly settleTask = (): undefined => undefined
}

export interface ReservingSession {
  readonly session: RealtimeSession
  readonly quota: SlowQuota
  /** The far ends. */
  readonly client: WebSocketEnd
  readonly upstream: WebSocketEnd
}

type WebSocketEnd = Awaited<ReturnType<SocketPairs['open']>>['client']

/** A session of a key with these limits, over real sockets. */
export async function openReservingSession(pairs: SocketPairs): Promise<ReservingSession> {
  const [near, far] = [await pairs.open({ near: 'server' }), await pairs.open({ near: 'client' })]
  const call = new RequestContext('req_1', 'GET', '/v1/realtime', performance.now())
  const quota = new SlowQuota()
  call.quota = quota
  const session = new RealtimeSession(
    near.server,
    { socket: far.client, dialect: 'beta' },
    {
      call,
      requestId: call.requestId,
      clientDialect: ClientDialect.of('beta'),
      limits: DEFAULT_LIMITS,
      recorder: new SilentRecorder(),
      traffic: new SessionTraffic(),
      keyId: 'team-a',
      kind: 'conversation',
      model: 'gpt-realtime',
      modelMap: {},
      transcriptionModel: () => ({ isServed: true, modelClass: 'stt-standard' }),
      channelId: 'p1-main',
      credentials: SECRET,
      logger: { info: () => undefined, warn: () => undefined },
    },
  )
  session.start()
  return { session, quota, client: near.client, upstream: far.server }
}

/** What a case does to a session, by which it may end. */
export type SessionAct = (opened: TestSession) => void

export const closes =
  (side: 'client' | 'upstream', code?: number): SessionAct =>
  (opened) => {
    opened[side].socket.close(code)
  }

/** Without a close of its own. */
export const vanishes =
  (side: 'client' | 'upstream'): SessionAct =>
  (opened) => {
    opened[side].socket.terminate()
  }

export const drains: SessionAct = ({ session }) => {
  session.drain()
}

export const revokes: SessionAct = ({ session }) => {
  session.revoke()
}
