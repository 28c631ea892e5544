import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { startGateway, TEST_KEY, type TestGateway } from '../../test/support/gateway.js'
import { unusedPort } from '../../test/support/raw-upstream.js'
import { contextAt } from '../../test/support/endpoints.js'
import { ENDPOINTS } from '../../test/support/endpoints.js'
import { ERROR_KINDS, type ErrorKind, GatewayError } from '../core/errors.js'
import { AttemptRecord, RequestContext } from '../core/request-context.js'
import { AccessLog, OUTCOME_LABELS, type OutcomeLabel, outcomeLabelOf } from './access-log.js'
import { createLogging } from './logger.js'
import { RouteTable } from './routes.js'

describe('access log', () => {
  /** Words that must never reach the log: secrets, what callers say, where upstreams live. */
  const CANARIES = {
    channelSecret: 'canary-channel-secret-1',
    callersKey: 'canary-callers-key-2',
    prompt: 'canary prompt three',
    hostname: 'canary-upstream-four.invalid',
    query: 'canary-query-five',
  }

  let upstream: Server
  let answer: (request: IncomingMessage, response: ServerResponse) => void
  let gateway: TestGateway | undefined
  beforeEach(async () => {
    upstream = createServer((request, response) => {
      request.resume()
      answer(request, response)
    })
    upstream.listen(0, '127.0.0.1')
    await once(upstream, 'listening')
  })
  afterEach(async () => {
    await gateway?.close()
    gateway = undefined
    upstream.closeAllConnections()
    upstream.close()
  })

  const urlOf = (port = (upstream.address() as AddressInfo).port): string => `http://127.0.0.1:${port}`

  async function gatewayTo(baseUrl: string, channel: object = {}): Promise<TestGateway> {
    const entry = { id: 'main', provider: 'p1', baseUrl, credentials: CANARIES.channelSecret, ...channel }
    gateway = await startGateway({ channels: [entry] })
    return gateway
  }

  interface Exchange {
    readonly status: number
    readonly text: string
    readonly line: Record<string, unknown>
  }

  async function chat({ url, logLine }: TestGateway, fields: object = {}, key = TEST_KEY): Promise<Exchange> {
    const response = await fetch(`${url}/v1/chat/completions?q=${CANARIES.query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: CANARIES.prompt }], ...fields }),
    })
    const text = await response.text().catch(() => 'cut')
    return { status: response.status, text, line: await logLine(response.headers.get('x-request-id') ?? '') }
  }

  const json = (response: ServerResponse, status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'up-1' }).end(JSON.stringify(body))
  }

  describe('The log line of a request', () => {
    it('says who asked for what, where it went, how it ended and what it used, and nothing else', async () => {
      answer = (_request, response) => {
        json(response, 200, { choices: [{ message: { content: CANARIES.prompt } }], usage: { total_tokens: 20 } })
      }
      const { line, text } = await chat(await gatewayTo(urlOf()))
      expect(line).toMatchObject({
        keyId: 'test',
        method: 'POST',
        route: '/v1/chat/completions',
        model: 'gpt-4o-mini',
        channel: 'main',
        attempts: 1,
        status: 200,
        upstreamStatus: 200,
        upstreamRequestId: 'up-1',
        bytesOut: Buffer.byteLength(text),
        usage: { units: { total_tokens: 20 }, estimated: false },
        msg: 'request',
      })
      for (const name of ['totalMs', 'receiveMs', 'upstreamMs', 'firstByteMs', 'gatewayMs']) {
        expect(line[name]).toBeGreaterThanOrEqual(0)
      }
      expect(Object.keys(line).sort()).toEqual(
        [
          ...[
            'attempts',
            'bytesOut',
            'channel',
            'firstByteMs',
            'gatewayMs',
            'keyId',
            'level',
            'method',
            'model',
            'msg',
          ],
          ...['receiveMs', 'requestId', 'route', 'status', 'time', 'totalMs', 'upstreamMs', 'upstreamRequestId'],
          ...['upstreamStatus', 'usage'],
        ].sort(),
      )
    })

    it('names a failure by its kind, code and field', async () => {
      const { line } = await chat(await gatewayTo(urlOf()), { messages: [] })
      expect(line).toMatchObject({
        level: 30,
        status: 400,
        attempts: 0,
        failure: { kind: 'invalid_request', code: 'empty_array', param: 'messages' },
      })
    })

    it('is a warning, not a caller who left, when the gateway cut an answer because its upstream broke off', async () => {
      answer = (_request, response) => {
        response.writeHead(200, { 'content-type': 'audio/mpeg' })
        response.write('half', () => response.destroy())
      }
      const { url, logLine } = await gatewayTo(urlOf())
      const response = await fetch(`${url}/v1/audio/speech`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'tts-1', input: CANARIES.prompt, voice: 'alloy' }),
      })
      await expect(response.text()).rejects.toThrow('terminated')
      expect(await logLine(response.headers.get('x-request-id') ?? '')).toMatchObject({
        level: 40,
        status: 200,
        failure: { kind: 'upstream_failed' },
      })
    })

    it('has the status 499 when the caller left', async () => {
      const arrived = new Promise<void>((resolve) => {
        answer = () => {
          resolve()
        }
      })
      const { url, logLine } = await gatewayTo(urlOf())
      const leaving = new AbortController()
      const asking = fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json', 'x-request-id': 'left-1' },
        body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'a' }] }),
        signal: leaving.signal,
      })
      await arrived
      leaving.abort()
      await expect(asking).rejects.toMatchObject({ name: 'AbortError' })
      expect(await logLine('left-1')).toMatchObject({ level: 30, status: 499, channel: 'main' })
    })

    it('keeps short what a caller or an upstream makes long', async () => {
      answer = (_request, response) => {
        json(response, 400, { error: { message: 'a', code: 'c'.repeat(10_000), param: 'p'.repeat(10_000) } })
      }
      const { line } = await chat(await gatewayTo(urlOf(), { models: ['*'] }), { model: 'm'.repeat(100_000) })
      expect(line).toMatchObject({ model: 'm'.repeat(128), failure: { code: 'c'.repeat(128), param: 'p'.repeat(128) } })
    })
  })

  describe('The log', () => {
    it('never holds a secret, a word of a caller or the address of an upstream', async () => {
      const echo = `${CANARIES.prompt} ${CANARIES.channelSecret} Bearer ${CANARIES.callersKey}`
      const running = await gatewayTo(urlOf())
      for (const status of [200, 400, 401, 403, 422, 429, 500]) {
        answer = (_request, response) => {
          json(response, status, { error: { message: echo, type: 'x' }, choices: [], text: echo })
        }
        await chat(running)
      }
      answer = (_request, response) => response.destroy()
      await chat(running)
      answer = (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(`{${echo}`)
      await chat(running)
      expect((await chat(running, {}, CANARIES.callersKey)).status).toBe(401)
      expect((await chat(running, { messages: CANARIES.prompt })).status).toBe(400)
      const text = running.logText()
      expect(text.split('\n').length).toBeGreaterThan(10)
      for (const canary of Object.values(CANARIES)) expect(text).not.toContain(canary)
      expect(text).not.toContain(urlOf().slice(7))
      expect(text).not.toContain(TEST_KEY)
    })

    it('says that an upstream could not be reached without saying where it is', async () => {
      const port = await unusedPort()
      const refused = await gatewayTo(urlOf(port))
      const { line, status, text } = await chat(refused)
      expect(status).toBe(502)
      expect(line).toMatchObject({ failure: { kind: 'upstream_failed' } })
      expect(JSON.stringify(line['failure'])).toContain('ECONNREFUSED')
      expect(refused.logText() + text).not.toContain(String(port))
      await refused.close()
      const unknown = await gatewayTo(`http://${CANARIES.hostname}:1`)
      const second = await chat(unknown)
      expect(second.line).toMatchObject({ failure: { kind: 'upstream_failed' } })
      expect(unknown.logText() + second.text).not.toContain('canary')
    })
  })
})

function label(failure: unknown, status: number, left = false): OutcomeLabel {
  const call = new RequestContext('req_1', 'POST', '/v1/chat/completions', 0)
  call.log.failure = failure
  return outcomeLabelOf(call, { status, left, totalMs: 1, gatewayMs: 1 })
}

const failed = (kind: ErrorKind): GatewayError => new GatewayError(kind, 'It failed.')

describe('The word for how a call ended', () => {
  it.each([
    ['an answer', undefined, 200, 'ok'],
    ['a socket', undefined, 101, 'ok'],
    ['an upstream that fails', failed('upstream_failed'), 502, 'upstream_failed'],
    ['an upstream that is late', failed('upstream_timeout'), 504, 'upstream_failed'],
    ['a stream that its upstream cut after 200', failed('upstream_failed'), 200, 'upstream_failed'],
    ['a limit', failed('rate_limited'), 429, 'refused'],
    ['an invalid request', failed('invalid_request'), 400, 'refused'],
    ['a probe that is told no', undefined, 503, 'refused'],
    ['no room', failed('overloaded'), 503, 'overloaded'],
    ['a fault of the gateway', failed('internal'), 500, 'gateway_failed'],
    ['an unknown error', new Error('odd'), 500, 'gateway_failed'],
  ])('after %s', (_what, failure, status, expected) => {
    expect(label(failure, status)).toBe(expected)
  })

  it('is that its caller left, whatever failed because of it', () => {
    expect(label(failed('caller_left'), 499, true)).toBe('left')
    expect(label(undefined, 499, true)).toBe('left')
  })

  it('is one of the list for every kind of error', () => {
    for (const kind of Object.keys(ERROR_KINDS) as ErrorKind[])
      expect(OUTCOME_LABELS).toContain(label(failed(kind), 500))
  })
})

const table = new RouteTable(
  [
    { path: '/v1/chat/completions', methods: ['POST'] },
    { path: '/v1/models', methods: ['GET'] },
    { path: '/v1/models/*model', methods: ['GET'] },
    { path: '/vidgen/v1/videos/text2video', methods: ['POST'] },
    { path: '/vidgen/v1/videos/text2video', methods: ['GET'] },
    { path: '/vidgen/v1/videos/text2video/:id', methods: ['GET'] },
    { path: '/vidgen/v1/videos/text2video/:id/events', methods: ['GET'] },
    { path: '/admin/*path', methods: ['GET'] },
  ],
  (template) => ENDPOINTS.metricFamilyOf(template),
)

describe('A path', () => {
  it.each([
    ['/v1/chat/completions', '/v1/chat/completions', 'chat'],
    ['/v1/models/gpt-4o', '/v1/models/*model', 'other'],
    ['/v1/models/a/b', '/v1/models/*model', 'other'],
    ['/vidgen/v1/videos/text2video/abc', '/vidgen/v1/videos/text2video/:id', 'video'],
    ['/vidgen/v1/videos/text2video/abc/events', '/vidgen/v1/videos/text2video/:id/events', 'video'],
    ['/admin/whatever/else', '/admin/*path', 'other'],
  ])('%s is counted under %s', (path, template, family) => {
    expect(table.find(contextAt('GET', path))).toMatchObject({ template, family })
  })

  it.each([
    '/',
    '',
    '/v1/models/',
    '/v1/Chat/completions',
    '/v1/chat/completions/',
    '/vidgen/v1/videos/text2video//events',
    '/constructor',
    `/${'a/'.repeat(8000)}`,
  ])('that no route knows is counted under none of its own: %.40s', (path) => {
    expect(table.find(contextAt('GET', path))).toMatchObject({ template: 'other', family: 'other' })
  })

  it('has the methods of all its routes, and HEAD where there is GET', () => {
    expect([...table.find(contextAt('GET', '/vidgen/v1/videos/text2video')).methods].sort()).toEqual([
      'GET',
      'HEAD',
      'POST',
    ])
    expect([...table.find(contextAt('GET', '/v1/chat/completions')).methods]).toEqual(['POST'])
    expect([...table.find(contextAt('GET', '/nothing')).methods]).toEqual([])
  })
})

describe('The lines of refused requests', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it.each([400, 401, 404, 405, 426, 429])(
    'with %i are a hundred in a second; the others are one line with their number',
    (status) => {
      const lines: Record<string, unknown>[] = []
      const log = new AccessLog(createLogging('info', { write: (line) => lines.push(JSON.parse(line) as never) }))
      const outcome = { left: false, totalMs: 1, gatewayMs: 1 }
      const written = (count: number, of = status, attempts = 0): number => {
        const before = lines.length
        for (let index = 0; index < count; index++) {
          const call = contextAt('GET', '/v1/models')
          for (let attempt = 0; attempt < attempts; attempt++) call.log.attempts.push(new AttemptRecord('one', 0))
          log.write(call, { ...outcome, status: of })
        }
        return lines.length - before
      }
      expect(written(1485)).toBe(100)
      expect([200, 500].map((other) => written(1, other))).toEqual([1, 1])
      // The upstream's own refusal.
      expect(written(1, 400, 1)).toBe(1)
      log.omit(15)
      jest.advanceTimersByTime(1_000)
      expect(lines.at(-1)).toMatchObject({ refused: 1400 })
      expect(written(100)).toBe(100)
      jest.advanceTimersByTime(10_000)
      expect(lines.filter(({ refused }) => refused !== undefined)).toHaveLength(1)
    },
  )
})
