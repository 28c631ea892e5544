import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  request,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { type ErrorKind, GatewayError } from '../../src/core/errors.js'
import { renderError } from '../../src/dialects/error-format.js'
import { ADMIN_KEY, adminCaller } from '../support/admin-lab.js'
import { dialectOf } from '../support/endpoints.js'
import { freePort, startParts } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, openRaw, sendRaw, TEST_KEY } from '../support/gateway.js'
import {
  REALTIME_PATH,
  realtimeChannel,
  type RealtimeUpstream,
  startRealtimeUpstream,
} from '../support/realtime-upstream.js'
import { type Balancer, type ConfigurationChange, startBalancer } from './balancer.js'
import { LimitedCaller, openStream } from './callers.js'
import {
  type ChatCluster,
  type Cluster,
  CLUSTER_START_MS,
  DRAIN_DELAY_MS,
  startChatCluster,
  startCluster,
} from './cluster.js'
import { comesTrue } from './daemon.js'
import { chat } from './worker-lab.js'

describe('The ports of the balancer', () => {
  /** Anything in 127.0.0.0/8 is this machine; the balancer speaks to the gateways from 127.0.0.1. */
  const CALLER = '127.0.0.9'

  let cluster: ChatCluster
  beforeAll(async () => {
    cluster = await startChatCluster({
      sections: {
        auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY },
        // The caller's own address, too, as where callers come from the network of the balancer: Docker's, or an office's.
        server: { trustedProxies: ['127.0.0.0/8'] },
      },
    })
  }, CLUSTER_START_MS)
  afterAll(() => cluster.close())

  interface Sent {
    readonly method?: string
    /** As it stands in the request line. */
    readonly target: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  }

  /** From the caller's own address, with a target that is not normalised. */
  async function send(url: string, { method = 'GET', target, headers = {}, body = '' }: Sent) {
    const { hostname, port } = new URL(url)
    const outgoing = request({ hostname, port, method, path: target, headers, localAddress: CALLER, agent: false })
    outgoing.end(body)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response) text += String(chunk)
    return { status: response.statusCode, headers: response.headers, text }
  }

  const asOperator = { authorization: `Bearer ${ADMIN_KEY}` }

  describe('the administration behind the balancer', () => {
    it.each(['GET', 'POST', 'PATCH', 'DELETE', 'PUT'])(
      'is a path that never existed to %s from outside',
      async (method) => {
        const nowhere = await send(cluster.url, { method, target: '/nowhere', headers: asOperator })
        expect(nowhere.status).toBe(404)
        for (const target of ['/admin', '/admin/', '/admin/v1', '/admin/v1/keys', '/admin/v1/keys?limit=1']) {
          const { status, text, headers } = await send(cluster.url, { method, target, headers: asOperator })
          const [path = ''] = target.split('?')
          const expected: unknown = JSON.parse(nowhere.text.replace('/nowhere', path))
          expect([target, status, JSON.parse(text)]).toEqual([target, 404, expected])
          expect(headers['content-type']).toBe(nowhere.headers['content-type'])
          expect(headers['x-request-id']).toMatch(/^req_/)
        }
      },
    )

    it.each([
      'http://gateway.example/admin/v1/keys',
      '//admin/v1/keys',
      '/%61dmin/v1/keys',
      '/admin%2fv1/keys',
      '/ADMIN/v1/keys',
      '/./admin/v1/keys',
      '/v1/../admin/v1/keys',
      '/v1/%2e%2e/admin/v1/keys',
      '/;/admin/v1/keys',
      '/\\admin/v1/keys',
    ])('is not reached by way of %s either', async (target) => {
      const { status, text } = await send(cluster.url, { target, headers: asOperator })
      expect([400, 404]).toContain(status)
      expect(text).not.toContain('"data"')
    })

    it('is not in the query of another path', async () => {
      const { status, text } = await send(cluster.url, { target: '/?/../admin/v1/keys', headers: asOperator })
      expect([status, text]).toEqual([200, expect.stringContaining('Multi-Model Gateway')])
    })

    it.each(['/\\admin/v1/keys', 'ftp://HOST/admin/v1/keys', 'ftp://HOST/admin\\v1\\keys'])(
      'is not looked for by a target that parsers read in different ways: %s',
      async (target) => {
        // HAProxy itself refuses another authority than that of the Host header.
        const named = target.replace('HOST', new URL(cluster.url).host)
        const { status, text } = await send(cluster.url, { target: named, headers: asOperator })
        expect([status, JSON.parse(text)]).toMatchObject([400, { error: { code: 'invalid_target' } }])
        // The gateway would say it in other words.
        expect(text).toContain('a path or an http address')
      },
    )

    it('is served where the operators connect', async () => {
      const { status, json } = await adminCaller(cluster.balancer.operatorsUrl).call('GET', '/keys')
      expect([status, json['data']]).toEqual([200, []])
    })
  })

  describe('a caller behind the balancer', () => {
    const refused = { authorization: 'Bearer nobodys', 'x-forwarded-for': '198.51.100.1' }

    it('is known by the address it came from, whatever it claims, in the log', async () => {
      const headers = { ...refused, 'x-request-id': 'stranger', 'content-type': 'application/json' }
      await send(cluster.url, { method: 'POST', target: CHAT_PATH, headers, body: chatText('Hi') })
      const line = /\{[^\n]*"requestId":"stranger"[^\n]*\}/
      const [text] = await Promise.any(cluster.replicas.map(({ process }) => process.said(line)))
      expect(JSON.parse(text)).toMatchObject({ status: 401, address: CALLER })
    })

    it('and in the audit log', async () => {
      const { operatorsUrl } = cluster.balancer
      expect((await send(operatorsUrl, { target: '/admin/v1/keys', headers: refused })).status).toBe(401)
      const { json } = await adminCaller(operatorsUrl).call('GET', '/audit')
      expect(json['data']).toContainEqual(
        expect.objectContaining({
          action: 'authorize',
          details: expect.objectContaining({ address: CALLER }) as unknown,
        }),
      )
    })
  })
})

describe('balancer drain', () => {
  const PACE_MS = 20
  /** Ten seconds of a stream: long enough to meet the drain, also on a busy machine. */
  const SHORT_CHUNKS = 500
  const ENDLESS_CHUNKS = 1_000_000

  /** `hard-stop-after` in deploy/haproxy/haproxy.cfg, and docker-compose.yml's patience with it. */
  const HARD_STOP_MS = 40_000
  const KILLED_AFTER_MS = 45_000

  let cluster: ChatCluster
  beforeAll(async () => {
    cluster = await startChatCluster({ paceMs: PACE_MS })
  }, CLUSTER_START_MS)
  afterAll(() => cluster.close())

  /** One for each test, as none survives it. */
  let balancer: Balancer
  beforeEach(async () => {
    balancer = await startBalancer(cluster.replicas.map(({ address }) => address))
    await balancer.shows(1, true)
  })
  afterEach(() => balancer.close())

  /** The connection error of a new client, or undefined if it connects. */
  async function faultOfNew(url: string): Promise<string | undefined> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    try {
      await once(socket, 'connect')
      return undefined
    } catch (error) {
      return (error as NodeJS.ErrnoException).code
    } finally {
      socket.destroy()
    }
  }

  describe('A balancer after SIGUSR1', () => {
    it('takes nothing new, lets streams and sessions end whole, and ends by itself after the last of them', async () => {
      const { url, operatorsUrl } = balancer
      const stream = await openStream(url, SHORT_CHUNKS)
      const session = await new LimitedCaller(url, TEST_KEY).dial()
      let isGone = false
      const drained = balancer.drain().finally(() => {
        isGone = true
      })
      for (const closed of [url, operatorsUrl])
        await comesTrue(async () => (await faultOfNew(closed)) === 'ECONNREFUSED')
      expect(stream.response.complete).toBe(false)
      expect(await stream.text).toContain(`piece${SHORT_CHUNKS}`)
      expect(await stream.text).toContain('data: [DONE]')
      expect(stream.response.complete).toBe(true)
      const answered = once(session, 'pong')
      session.ping()
      await answered
      expect(isGone).toBe(false)
      session.close(1000)
      expect((await once(session, 'close'))[0]).toBe(1000)
      expect(await drained).toBe(0)
    })

    it(
      'does not wait for ever: what has not ended after forty seconds is cut, before Compose would kill it',
      async () => {
        const stream = await openStream(balancer.url, ENDLESS_CHUNKS)
        const aborted = cluster.simulator.nextAbort()
        const toldAtMs = performance.now()
        await balancer.drain()
        const tookMs = performance.now() - toldAtMs
        expect(tookMs).toBeGreaterThanOrEqual(HARD_STOP_MS - 100)
        expect(tookMs).toBeLessThan(KILLED_AFTER_MS)
        expect(await stream.text).not.toContain('[DONE]')
        // The gateway has seen that the caller is gone, and so has the upstream.
        await aborted
      },
      KILLED_AFTER_MS + 15_000,
    )
  })
})

describe('balancer words', () => {
  /** An id that breaks JSON unless it is escaped; the gateway accepts it. */
  const REQUEST_ID = 'a"b\\c'

  /** One path of each dialect; the last ones look like another dialect and are not. */
  const PATHS = [
    CHAT_PATH,
    '/v1/messages',
    '/v1/messages/count_tokens?beta=true',
    '/vidgen/v1/videos/text2video',
    '/v1/document/parse',
    '/imggen/mj/submit/imagine',
    '/v1/messagesandmore',
    '/imggenuine',
  ]

  interface Case {
    readonly what: string
    readonly kind: ErrorKind
    /** The balancer's own word, in the dialect that has one. */
    readonly code: string
    readonly before: keyof Urls
  }

  /** Ready, and then of no use. */
  async function startReplica(
    serve: RequestListener,
  ): Promise<{ readonly address: string; close(): Promise<unknown> }> {
    const server = createServer((request, response) => {
      if (request.url === '/health/ready') response.end('{"status":"ready"}')
      else serve(request, response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return {
      address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      close: () => {
        server.closeAllConnections()
        return new Promise((resolve) => server.close(resolve))
      },
    }
  }

  /** A balancer each: without a gateway, with gateways that break off, with silent ones. */
  interface Urls {
    readonly absent: string
    readonly dying: string
    readonly silent: string
  }

  /** A second instead of ten minutes of patience. */
  const impatient = (configuration: string): string => configuration.replace('timeout server 600s', 'timeout server 1s')

  const startAll = (): Promise<{ readonly urls: Urls; close(): Promise<void> }> =>
    startParts(async (closedAtLast) => {
      const before = async (address: string, change?: ConfigurationChange): Promise<string> =>
        closedAtLast(await startBalancer([address, address], change)).url
      const dying = closedAtLast(await startReplica((request) => request.socket.destroy()))
      const silent = closedAtLast(await startReplica(() => undefined))
      const urls = {
        absent: await before(`127.0.0.1:${await freePort()}`),
        dying: await before(dying.address),
        silent: await before(silent.address, impatient),
      }
      return { urls }
    })

  let balancers: Awaited<ReturnType<typeof startAll>>
  beforeAll(async () => {
    balancers = await startAll()
  }, CLUSTER_START_MS)
  afterAll(() => balancers.close())

  const CASES: readonly Case[] = [
    { what: 'no gateway is there', kind: 'overloaded', code: 'no_gateway', before: 'absent' },
    { what: 'the gateway breaks off', kind: 'upstream_failed', code: 'gateway_lost', before: 'dying' },
    { what: 'the gateway is silent', kind: 'upstream_timeout', code: 'gateway_timeout', before: 'silent' },
  ]

  describe.each(CASES)('what the balancer says itself when $what', ({ kind, code, before }) => {
    it.each(PATHS)('is what the gateway would say on %s', async (path) => {
      const { status, headers, text } = await sendRaw(balancers.urls[before], {
        path,
        headers: { 'x-request-id': REQUEST_ID },
        body: '{}',
      })
      const said = JSON.parse(text) as { readonly message?: string; readonly error?: { readonly message: string } }
      const message = said.error?.message ?? said.message ?? ''
      expect(message).toMatch(/^(?:No|The) gateway /)
      const pathname = path.split('?')[0] ?? ''
      const own = renderError(new GatewayError(kind, message, { code }), dialectOf(pathname), REQUEST_ID)
      expect([status, said]).toEqual([own.status, JSON.parse(own.body)])
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-request-id': REQUEST_ID })
      expect(headers['request-id']).toBe(own.headers['request-id'])
      expect(headers['retry-after']).toBe(kind === 'overloaded' ? '1' : undefined)
      expect(headers['x-should-retry']).toBe(kind === 'overloaded' ? undefined : 'false')
    })
  })

  describe('the official SDK of the messages family', () => {
    it('reads the type, the text and the id of such an answer', async () => {
      const client = new Anthropic({ apiKey: 'any', baseURL: balancers.urls.absent, maxRetries: 0 })
      const call = client.messages.create({
        model: 'claude',
        max_tokens: 1,
        messages: [{ role: 'user', content: 'Hi' }],
      })
      const failure: unknown = await call.catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(Anthropic.APIError)
      const { status, error, requestID } = failure as InstanceType<typeof Anthropic.APIError>
      expect([status, error]).toMatchObject([529, { type: 'error', error: { type: 'overloaded_error' } }])
      expect(requestID).toMatch(/^req_/)
    })
  })
})

describe('balancer', () => {
  const GOING_AWAY = 1001
  /** Long enough for a busy machine to end an answer in. */
  const GRACE_MS = 5_000
  const EVENTS = 20

  let upstream: Server
  /** Of the request that the upstream has; it writes nothing by itself. */
  let answers: ServerResponse[]
  let realtime: RealtimeUpstream
  let cluster: Cluster
  beforeAll(async () => {
    answers = []
    upstream = createServer((incoming, answer) => {
      incoming.resume()
      answer.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      answers.push(answer)
      upstream.emit('asked')
    }).listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    realtime = await startRealtimeUpstream()
    const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
    cluster = await startCluster({
      channels: [
        { id: 'chat', provider: 'p1', baseUrl, credentials: 'upstream', models: ['gpt-4o-mini'] },
        realtimeChannel(realtime, { id: 'talk', models: ['gpt-realtime'], options: { realtimeDialect: 'beta' } }),
      ],
      sections: { timeouts: { shutdownGraceMs: GRACE_MS } },
    })
  }, CLUSTER_START_MS)
  afterAll(async () => {
    await cluster.close()
    await realtime.close()
    upstream.closeAllConnections()
    upstream.close()
  })

  interface Session {
    readonly client: WebSocket
    readonly far: WebSocket
  }

  /** A session through the balancer, with the upstream's end of it. */
  async function openSession(): Promise<Session> {
    const before = realtime.sockets.length
    const client = new WebSocket(cluster.url.replace('http', 'ws') + REALTIME_PATH, {
      headers: { authorization: `Bearer ${TEST_KEY}`, 'openai-beta': 'realtime=v1' },
    })
    await once(client, 'open')
    const far = realtime.sockets[before]
    if (far === undefined) throw new Error('the upstream was not asked')
    return { client, far }
  }

  const textOf = async (socket: WebSocket): Promise<string> => String((await once(socket, 'message'))[0])

  async function speaksBothWays({ client, far }: Session): Promise<void> {
    for (let round = 0; round < 3; round++) {
      const question = JSON.stringify({ type: 'input_audio_buffer.clear', event_id: `question-${round}` })
      const heard = textOf(far)
      client.send(question)
      expect(await heard).toBe(question)
      const answer = JSON.stringify({ type: 'input_audio_buffer.cleared', event_id: `answer-${round}` })
      const told = textOf(client)
      far.send(answer)
      expect(await told).toBe(answer)
    }
  }

  /** The upstream says it, and the client has heard it. */
  async function tell({ client, far }: Session, event: object): Promise<void> {
    const told = textOf(client)
    far.send(JSON.stringify(event))
    expect(JSON.parse(await told)).toEqual(event)
  }

  const BEGUN = { type: 'response.created', response: { id: 'resp_1' } }
  const WORD = { type: 'response.text.delta', delta: 'Hello' }
  const DONE = { type: 'response.done', response: { id: 'resp_1', status: 'completed' } }

  /** A session at each replica, as the balancer uses the replica with fewer connections; the one in the middle of an answer if wanted. */
  async function openPair(events: readonly object[]): Promise<readonly Session[]> {
    const pair = [await openSession(), await openSession()]
    for (const session of pair) for (const event of events) await tell(session, event)
    return pair
  }

  describe('through the balancer', () => {
    it('each event of a stream is with the caller before the upstream writes the next one', async () => {
      const asked = once(upstream, 'asked')
      const pending = openRaw(cluster.url, { path: CHAT_PATH, body: chatText('Hi', { stream: true }) })
      await asked
      const answer = answers.at(-1)
      const event = (number: number): string =>
        `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${number}"}}]}\n\n`
      answer?.write(event(0))
      const response = (await pending).setEncoding('utf8')
      let text = ''
      for (let number = 0; number < EVENTS; number++) {
        // Without an end: collecting all of them would wait for ever.
        while (!text.includes(`"content":"${number}"`)) text += String((await once(response, 'data'))[0])
        expect(text).not.toContain(`"content":"${number + 1}"`)
        answer?.write(event(number + 1))
      }
      response.destroy()
    })

    it('a body need not have come whole for the gateway to judge its head', async () => {
      const headers = {
        authorization: 'Bearer nobodys',
        'content-type': 'application/json',
        'content-length': 1_000_000,
      }
      const outgoing = request(cluster.url + CHAT_PATH, { method: 'POST', headers, agent: false })
      outgoing.on('error', () => undefined)
      outgoing.write('{"model":')
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
      expect(response.statusCode).toBe(401)
      outgoing.destroy()
    })

    it('a session speaks both ways, and its end is passed on', async () => {
      const session = await openSession()
      await speaksBothWays(session)
      const ended = once(session.far, 'close')
      session.client.close(1000)
      await ended
    })

    it('a restart of one replica ends its sessions with 1001, none in mid-answer before the grace is over, and none of the other', async () => {
      const [idle, ending, endless] = [await openPair([]), await openPair([BEGUN]), await openPair([BEGUN])]
      const sessions = [...idle, ...ending, ...endless]
      const ends: { readonly client: WebSocket; readonly code: number; readonly atMs: number }[] = []
      for (const { client } of sessions) {
        client.on('close', (code) => ends.push({ client, code, atMs: performance.now() - stoppedAtMs }))
      }
      const [first] = cluster.replicas
      const endOfIdle = Promise.race(idle.map(({ client }) => once(client, 'close')))
      const endOfEnding = Promise.race(ending.map(({ client }) => once(client, 'close')))
      const stoppedAtMs = performance.now()
      const stopped = first?.stop()
      await endOfIdle
      expect(ends).toHaveLength(1)
      for (const session of [...ending, ...endless]) await tell(session, WORD)
      for (const session of ending) await tell(session, DONE)
      await endOfEnding
      expect(ends).toHaveLength(2)
      expect((await stopped)?.code).toBe(0)
      expect(ends.map(({ code }) => code)).toEqual([GOING_AWAY, GOING_AWAY, GOING_AWAY])
      const groups = [idle, ending, endless]
      expect(ends.map((end) => groups.findIndex((group) => group.some(({ client }) => client === end.client)))).toEqual(
        [0, 1, 2],
      )
      const [ofIdle, ofEnding, ofEndless] = ends.map(({ atMs }) => atMs)
      expect(ofIdle).toBeLessThan(DRAIN_DELAY_MS + GRACE_MS)
      expect(ofEnding).toBeLessThan(DRAIN_DELAY_MS + GRACE_MS)
      expect(ofEndless).toBeGreaterThanOrEqual(DRAIN_DELAY_MS + GRACE_MS - 100)
      const left = sessions.filter(({ client }) => !ends.some((end) => end.client === client))
      expect(left).toHaveLength(3)
      for (const session of [...left, await openSession()]) {
        await speaksBothWays(session)
        session.client.terminate()
      }
      await first?.start()
      await cluster.balancer.shows(1, true)
    })
  })
})

describe('keys', () => {
  /** What is promised for every replica. */
  const DEAD_WITHIN_MS = 5_000

  let cluster: ChatCluster
  beforeAll(async () => {
    cluster = await startChatCluster({
      sections: { auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY } },
    })
  }, CLUSTER_START_MS)
  afterAll(() => cluster.close())

  /** Of so many requests through the balancer, each on a connection of its own. */
  const statuses = async (key: string): Promise<ReadonlySet<number>> =>
    new Set(await Promise.all(Array.from({ length: 10 }, () => chat(cluster.url, key))))

  /** How long it took until every request through the balancer is answered with this status. */
  async function becomes(key: string, status: number): Promise<number> {
    const startedAtMs = performance.now()
    await comesTrue(async () => {
      const seen = await statuses(key)
      return seen.size === 1 && seen.has(status)
    })
    return performance.now() - startedAtMs
  }

  describe('a key behind the balancer', () => {
    it.each([
      ['first', 0],
      ['second', 1],
    ])(
      'works on both replicas soon and is dead on both within five seconds when the %s says so',
      async (_which, index) => {
        const admin = adminCaller(cluster.replicas[index]?.url ?? '')
        const { id, key } = await admin.issue()
        expect(await becomes(key, 200)).toBeLessThan(DEAD_WITHIN_MS)
        expect(await admin.call('DELETE', `/keys/${id}`)).toMatchObject({ status: 200 })
        expect(await becomes(key, 401)).toBeLessThan(DEAD_WITHIN_MS)
        expect(await statuses(TEST_KEY)).toEqual(new Set([200]))
      },
    )

    it('is dead on a replica that was started again, and the one that is alive is not', async () => {
      const admin = adminCaller(cluster.replicas[0]?.url ?? '')
      const [dead, alive] = [await admin.issue(), await admin.issue()]
      await admin.call('DELETE', `/keys/${dead.id}`)
      await cluster.replicas[1]?.kill()
      await cluster.replicas[1]?.start()
      const url = cluster.replicas[1]?.url ?? ''
      expect([await chat(url, dead.key), await chat(url, alive.key)]).toEqual([401, 200])
    })
  })
})
