import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterAll, describe, expect, it } from '@jest/globals'
import type { FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import { RequestHooks } from '../../src/observability/request-hooks.js'
import { Admission } from '../../src/overload/admission.js'
import { ABORT_LIMIT_MS, eventually, promised } from '../support/eventually.js'
import {
  ACCOUNT_FAULTS,
  ask,
  CALLER_FAULTS,
  CHANNEL_FAULTS,
  chatBytes,
  expectRefused,
  LASTING_CALLS,
  type LastingCall,
  nested,
  readAndLeave,
  type Refusal,
  SHORT_TIMEOUTS,
  timeAbort,
  tooManyRequests,
} from '../support/failing-calls.js'
import {
  chat,
  CHAT_PATH,
  chatText,
  connectTo,
  errorOf,
  eventsOf,
  type RawRequest,
  sendRaw,
  SPEECH_PATH,
  speechText,
  TEST_KEY,
} from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { openai4, openai6, OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { form, MULTIPART, multipartBytes, TRANSCRIPTIONS } from '../support/upload-server.js'

describe('errors', () => {
  const LIMITED_KEY = 'limited-gateway-key'
  const keys = [
    { id: 'test', key: TEST_KEY },
    { id: 'limited', key: LIMITED_KEY, models: ['tts-*', 'gpt-4o'] },
  ]

  let lab: P1Gateway
  /** Waits half a second for an upstream that says nothing; only for faults that are nothing but silence. */
  let impatient: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({ keys })))
  shareLab(async () => (impatient = await startP1Gateway({ channel: SHORT_TIMEOUTS })))

  afterAll(() => {
    expect(lab.gateway.logText()).toContain('"status":502')
    for (const { gateway } of [lab, impatient])
      expect(gateway.logText()).not.toMatch(/canary-key|sk-proj-abcdef|test-gateway-key/)
  })

  const labFor = (fault: FaultName): P1Gateway => (fault === 'hang' || fault === 'stall' ? impatient : lab)

  const BODIES: Readonly<Record<string, string>> = {
    [CHAT_PATH]: chatText('Hello'),
    [SPEECH_PATH]: speechText('Hello'),
  }
  const UNAUTHORIZED: Refusal = { status: 401, type: 'authentication_error', code: 'invalid_api_key' }
  const FORBIDDEN: Refusal = { status: 403, type: 'permission_error', code: 'model_not_allowed', param: 'model' }

  describe.each([CHAT_PATH, SPEECH_PATH])('without a key of the gateway, %s', (path) => {
    it.each([
      ['missing', undefined, /^No API key/],
      ['empty', '', /^No API key/],
      ['without a scheme', TEST_KEY, /malformed/],
      ['of another scheme', `Basic ${TEST_KEY}`, /malformed/],
      ['without a key', 'Bearer ', /malformed/],
      ['of two words', `Bearer ${TEST_KEY} ${TEST_KEY}`, /malformed/],
      ['with a character that is not printable', 'Bearer caf\u00e9', /malformed/],
      ['of more than 512 characters', `Bearer ${'k'.repeat(513)}`, /malformed/],
      ['of very many characters', `Bearer ${'k'.repeat(12_000)}`, /malformed/],
      ['unknown', 'Bearer unknown-key-canary', /not valid/],
      ["the key in another letter's case", `Bearer ${TEST_KEY.toUpperCase()}`, /not valid/],
      ['a beginning of the key', `Bearer ${TEST_KEY.slice(0, -1)}`, /not valid/],
      ['the key and more', `Bearer ${TEST_KEY}x`, /not valid/],
    ])('answers 401 when the authorization is %s', async (_name, authorization, message) => {
      const request = { path, body: BODIES[path] ?? '', headers: { authorization } }
      await expectRefused(lab, request, { ...UNAUTHORIZED, message })
      expect(lab.gateway.logText()).not.toContain('unknown-key-canary')
    })

    it('does not read the body', async () => {
      const headers = { authorization: undefined }
      await expectRefused(lab, { path, body: '{', headers }, UNAUTHORIZED)
      await expectRefused(lab, { path, body: 'x'.repeat(11_000_000), headers }, UNAUTHORIZED)
    })

    it('accepts no key in another header or in the query', async () => {
      const headers = { authorization: undefined, 'x-api-key': TEST_KEY, 'api-key': TEST_KEY }
      await expectRefused(lab, { path: `${path}?api_key=${TEST_KEY}`, body: BODIES[path] ?? '', headers }, UNAUTHORIZED)
    })

    it('accepts the scheme in any case', async () => {
      const headers = { authorization: `bearer   ${TEST_KEY}` }
      expect((await sendRaw(lab.gateway.url, { path, body: BODIES[path] ?? '', headers })).status).toBe(200)
    })
  })

  describe('a key with access to some models', () => {
    const headers = { authorization: `Bearer ${LIMITED_KEY}` }

    it.each([
      [CHAT_PATH, chatText('Hello', { model: 'gpt-4o' })],
      [SPEECH_PATH, speechText('Hello', { model: 'tts-1-hd' })],
    ])('is served on %s', async (path, body) => {
      expect((await sendRaw(lab.gateway.url, { path, body, headers })).status).toBe(200)
    })

    it.each([
      [CHAT_PATH, chatText('Hello', { model: 'gpt-4o-mini' })],
      [CHAT_PATH, chatText('Hello', { model: 'GPT-4o' })],
      [CHAT_PATH, chatText('Hello', { model: 'unknown-model' })],
      [SPEECH_PATH, speechText('Hello', { model: 'gpt-4o-mini-tts' })],
    ])('is refused on %s for %s', async (path, body) => {
      await expectRefused(lab, { path, body, headers }, FORBIDDEN)
    })
  })

  describe('a model', () => {
    it.each([
      ['unknown', 'no-such-model'],
      ['of speech', 'tts-1'],
      ['of transcription', 'whisper-1'],
      ['of messages', 'claude-sonnet-4-5'],
      ['of realtime', 'gpt-realtime'],
      ['that is a word of the language', 'constructor'],
      ['with markup', '<script>alert(1)</script>\u0000\u2028'],
      ['of endless length', 'm'.repeat(100_000)],
    ])('%s is not found on chat', async (_name, model) => {
      const refused = { status: 404, code: 'model_not_found', param: 'model' }
      await expectRefused(lab, { path: CHAT_PATH, body: chatText('Hello', { model }) }, refused)
    })

    it.each([
      ['unknown', 'no-such-model'],
      ['of chat', 'gpt-4o'],
      ['of transcription', 'whisper-1'],
      ['of a provider without a channel', 'speech-02-hd'],
    ])('%s is not found on speech', async (_name, model) => {
      const refused = { status: 400, code: 'model_not_found', param: 'model' }
      await expectRefused(lab, { path: SPEECH_PATH, body: speechText('Hello', { model }) }, refused)
    })
  })

  describe.each(OPENAI_CLIENTS)('the error classes of %s', (_name, makeClient) => {
    const wrong = { apiKey: 'wrong' }
    const limited = { apiKey: LIMITED_KEY }

    it.each([
      [
        'BadRequestError',
        {},
        { temperature: 3 },
        400,
        'decimal_above_max_value',
        'temperature',
        'invalid_request_error',
      ],
      ['AuthenticationError', wrong, {}, 401, 'invalid_api_key', null, 'authentication_error'],
      ['PermissionDeniedError', limited, {}, 403, 'model_not_allowed', 'model', 'permission_error'],
      ['UnprocessableEntityError', {}, chat('#422'), 422, null, null, 'invalid_request_error'],
      ['RateLimitError', {}, chat('#429'), 429, 'rate_limit_exceeded', null, 'rate_limit_error'],
      ['InternalServerError', {}, chat('#500'), 502, 'upstream_failed', null, 'upstream_error'],
      ['NotFoundError', {}, { model: 'no-such-model' }, 404, 'model_not_found', 'model', 'invalid_request_error'],
    ])('hold %s', async (className, options, fields, status, code, param, type) => {
      const error: unknown = await makeClient(lab.gateway, options)
        .chat.completions.create({ ...chat('Hello'), ...fields })
        .catch((thrown: unknown) => thrown)
      expect((error as Error).constructor.name).toBe(className)
      const requestID: unknown = expect.stringMatching(/^req_/)
      // The old client calls it `request_id`.
      const id = 'requestID' in (error as object) ? { requestID } : { request_id: requestID }
      expect(error).toMatchObject({ status, code, param, type, ...id })
    })

    it('do not make the client try again what cannot succeed', async () => {
      const client = makeClient(lab.gateway, { maxRetries: 2 })
      await expect(client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: '#401' })).rejects.toMatchObject(
        {
          status: 500,
        },
      )
      expect(lab.simulator.requests).toHaveLength(1)
    })
  })

  const REQUESTS = [
    ['a chat completion', CHAT_PATH, chatText('Hello'), 'chatStatus'],
    ['a streamed chat completion', CHAT_PATH, chatText('Hello', { stream: true }), 'chatStatus'],
    ['a speech', SPEECH_PATH, speechText('Hello'), 'audioStatus'],
    [
      'a speech as events',
      SPEECH_PATH,
      speechText('Hello', { model: 'gpt-4o-mini-tts', stream_format: 'sse' }),
      'audioStatus',
    ],
  ] as const

  describe.each(REQUESTS)('%s whose upstream fails before its first byte', (_name, path, body, statusColumn) => {
    it.each([...CALLER_FAULTS, ...ACCOUNT_FAULTS, ...CHANNEL_FAULTS])(
      'with $fault is refused as $code',
      async (row) => {
        const { gateway, simulator } = labFor(row.fault)
        simulator.queueFault(row.fault)
        // What meets a used connection is sent once more on a new one.
        if (row.fault === 'reset') simulator.queueFault(row.fault)
        const answer = await sendRaw(gateway.url, { path, body })
        const { message, ...error } = errorOf(answer)
        expect({ status: answer.status, ...error }).toEqual({
          status: row[statusColumn],
          type: row.type,
          code: row.code,
          param: null,
        })
        expect(answer.headers['x-should-retry']).toBe(row.shouldRetry)
        expect(answer.headers['content-type']).toBe('application/json')
        expect(answer.headers).not.toHaveProperty('openai-organization')
        expect(message).toMatch(
          row.words === undefined ? /^The (upstream|connection)/ : new RegExp(row.words.replace('.', '\\.')),
        )
        expect(answer.text).not.toMatch(/sk-ab|https?:|proj_simulated|org-simulated|127\.0\.0\.1/)
        if (row.fault !== 'reset') expect(simulator.requests).toHaveLength(1)
        else expect(simulator.requests.length).toBeLessThanOrEqual(2)
      },
    )

    it('with 429 gets Retry-After', async () => {
      lab.simulator.queueFault('429')
      const answer = await sendRaw(lab.gateway.url, { path, body })
      expect(answer.status).toBe(429)
      expect(errorOf(answer)).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null })
      expect(answer.headers['retry-after']).toBe('2')
      expect(answer.text).not.toContain('org-simulated')
    })
  })

  describe("the upstream's wish to be left alone", () => {
    it.each([
      [{ 'retry-after': '0' }, '1'],
      [{ 'retry-after': '3600' }, '60'],
      [{ 'retry-after': '-5' }, '1'],
      [{ 'retry-after': 'soon' }, '1'],
      [{ 'retry-after-ms': '20', 'retry-after': '30' }, '1'],
      [{ 'retry-after': 'Fri, 31 Dec 2199 23:59:59 GMT' }, '60'],
      [{}, '1'],
    ])('%j becomes %s seconds', async (headers, seconds) => {
      lab.simulator.queueFault(tooManyRequests(headers))
      const answer = await ask(lab.gateway)
      expect(answer.status).toBe(429)
      expect(answer.headers['retry-after']).toBe(seconds)
      expect(answer.text).not.toContain('org-canary1')
    })
  })

  describe("the upstream's own words about the caller's fault", () => {
    it('reach the caller with its own type, code and param, without hosts, accounts and keys', async () => {
      const secrets = `at https://internal.example.com/x of org-Canary12 with sk-proj-abcdef123456, Bearer ${UPSTREAM_KEY} on 10.1.2.3:8080`
      const error = {
        message: `Bad \u001b[31m"quote" ${secrets}`,
        type: 'odd_error',
        param: 'messages.[3].role',
        code: 'odd_code',
      }
      const headers = { 'content-type': 'application/json', 'x-request-id': 'req_upstream' }
      lab.simulator.queueFault({ kind: 'status', status: 400, headers, body: JSON.stringify({ error }) })
      const answer = await ask(lab.gateway)
      expect(errorOf(answer)).toMatchObject({ type: 'odd_error', param: 'messages.[3].role', code: 'odd_code' })
      expect(errorOf(answer).message).toMatch(/^Bad .*"quote"/)
      expect(answer.text).not.toMatch(/example\.com|Canary12|abcdef123456|canary-key|10\.1\.2\.3/)
      expect(answer.headers['x-request-id']).not.toBe('req_upstream')
    })

    it.each([409, 422])('keep their status %i', async (status) => {
      const error = { message: 'Not like this.', type: 'conflict_error', param: null, code: 'odd' }
      lab.simulator.queueFault({ kind: 'status', status, body: JSON.stringify({ error }) })
      const answer = await ask(lab.gateway)
      expect(answer.status).toBe(status)
      expect(errorOf(answer)).toEqual(error)
    })

    it.each([
      ['no body', ''],
      ['a page', '<html>https://internal.example.com</html>'],
      ['another dialect', '{"detail":"nope"}'],
      ['a list', '[1]'],
    ])('are replaced when they are %s', async (_name, body) => {
      lab.simulator.queueFault({ kind: 'status', status: 400, body })
      const answer = await ask(lab.gateway)
      expect(answer.status).toBe(400)
      expect(errorOf(answer)).toEqual({
        message: 'The upstream refused the request.',
        type: 'invalid_request_error',
        param: null,
        code: null,
      })
    })

    it('are a failure of the upstream when its status is none of an error', async () => {
      for (const status of [204, 302, 418, 451]) {
        lab.simulator.queueFault({ kind: 'status', status, headers: { location: 'http://127.0.0.1:1/' }, body: '' })
        const answer = await ask(lab.gateway)
        expect(answer.status).toBe(502)
        expect(errorOf(answer)).toMatchObject({ type: 'upstream_error', code: 'upstream_failed' })
      }
    })
  })

  const STYLE = { model: 'gpt-4o-mini-tts', stream_format: 'sse' }
  const PASSED_ON = [
    ['chat', CHAT_PATH, chatText('#chunks=20', { stream: true }), '\n\n'],
    ['speech events', SPEECH_PATH, speechText('Hello, this is a longer sentence.', STYLE), '\r\n\r\n'],
  ] as const
  const BUILT = [
    'speech events the gateway builds',
    SPEECH_PATH,
    speechText('#bytes=2000000', { stream_format: 'sse', response_format: 'pcm' }),
    '\r\n\r\n',
  ] as const

  describe.each([...PASSED_ON, BUILT])('a stream of %s', (name, path, body, boundary) => {
    const faults = [
      ['cut', 'upstream_failed'],
      ['stall', 'upstream_timeout'],
      // Raw audio that ends properly cannot be known to be incomplete.
      ...(name === BUILT[0] ? [] : [['cleancut', 'upstream_failed'] as const]),
    ] as const

    it.each(faults)('that suffers a %s ends in one error frame and without a terminator', async (fault, code) => {
      const { gateway, simulator } = labFor(fault)
      simulator.queueFault(fault)
      const answer = await sendRaw(gateway.url, { path, body })
      const events = eventsOf(answer.text)
      expect(answer.status).toBe(200)
      expect(answer.complete).toBe(true)
      expect(events.length).toBeGreaterThan(1)
      expect(errorOf({ text: events.at(-1) ?? '' })).toEqual({
        message: expect.any(String),
        type: 'upstream_error',
        param: null,
        code,
      })
      for (const event of events.slice(0, -1)) expect(JSON.parse(event)).not.toHaveProperty('error')
      expect(answer.text).not.toContain('[DONE]')
      expect(answer.text.endsWith(boundary)).toBe(true)
      const line = await gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ status: 200, failure: { kind: code } })
    })
  })

  describe.each(PASSED_ON)('a stream of %s', (_name, path, body, _boundary) => {
    it("that ends in the upstream's error frame passes it on and nothing after it", async () => {
      lab.simulator.queueFault('errorframe')
      const answer = await sendRaw(lab.gateway.url, { path, body })
      const events = eventsOf(answer.text)
      expect(errorOf({ text: events.at(-1) ?? '' })).toMatchObject({ type: 'server_error', param: null, code: null })
      expect(events).toHaveLength(3)
      expect(answer.text).not.toContain('[DONE]')
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ failure: { kind: 'upstream_failed' } })
    })

    it('that comes slowly comes whole', async () => {
      lab.simulator.queueFault('slow')
      const answer = await sendRaw(lab.gateway.url, { path, body })
      expect(eventsOf(answer.text).at(-1)).toBe('[DONE]')
    })
  })

  describe('a chat stream', () => {
    it('is not finished while one of its choices is not', async () => {
      const chunk = (index: number, reason: string | null): string =>
        `data: ${JSON.stringify({ choices: [{ index, delta: {}, finish_reason: reason }] })}\n\n`
      const body = chunk(0, null) + chunk(1, null) + chunk(0, 'stop')
      const headers = { 'content-type': 'text/event-stream' }
      lab.simulator.queueFault({ kind: 'status', status: 200, headers, body })
      const answer = await sendRaw(lab.gateway.url, {
        path: CHAT_PATH,
        body: chatText('Hello', { stream: true, n: 2 }),
      })
      expect(answer).toMatchObject({ status: 502 })
      expect(errorOf(answer)).toMatchObject({ code: 'upstream_failed' })
    })

    it.each([
      ['openai 6.49.0', openai6],
      ['openai 4.104.0', openai4],
    ])('that is cut throws in %s', async (_name, makeClient) => {
      lab.simulator.queueFault('cut')
      const stream = await makeClient(lab.gateway).chat.completions.create({ ...chat('#chunks=20'), stream: true })
      const read = async (): Promise<void> => {
        for await (const chunk of stream) expect(chunk.choices).toHaveLength(1)
      }
      await expect(read()).rejects.toMatchObject({ type: 'upstream_error', code: 'upstream_failed' })
    })
  })

  describe('a chat completion', () => {
    it.each([
      ['cut', 502, 'upstream_failed', 'false'],
      ['cleancut', 502, 'upstream_failed', undefined],
      ['stall', 504, 'upstream_timeout', 'false'],
      ['errorframe', 502, 'upstream_failed', undefined],
    ] as const)('whose answer suffers a %s is refused with %s %s', async (fault, status, code, shouldRetry) => {
      const { gateway, simulator } = labFor(fault)
      simulator.queueFault(fault)
      const answer = await ask(gateway)
      expect(answer.status).toBe(status)
      expect(errorOf(answer)).toMatchObject({ type: 'upstream_error', code })
      expect(answer.headers['x-should-retry']).toBe(shouldRetry)
    })
  })

  describe('raw audio', () => {
    it.each(['cut', 'stall', 'errorframe'] as const)('that suffers a %s is visibly cut', async (fault) => {
      const { gateway, simulator } = labFor(fault)
      simulator.queueFault(fault)
      const body = speechText('#bytes=2000000', { response_format: 'pcm' })
      const answer = await sendRaw(gateway.url, {
        path: SPEECH_PATH,
        body,
        headers: { 'x-request-id': `raw-${fault}` },
      })
      expect(answer.status).toBe(200)
      expect(answer.complete).toBe(false)
      expect(answer.body.length).toBeGreaterThan(0)
      const line = await gateway.logLine(`raw-${fault}`)
      expect(line).toMatchObject({ failure: { kind: fault === 'stall' ? 'upstream_timeout' : 'upstream_failed' } })
      expect(line['status']).not.toBe(499)
    })
  })

  async function answerTo(text: string): Promise<string> {
    const socket = connectTo(lab.gateway)
    socket.write(text)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    return chunk.toString()
  }

  describe('Requests one behind the other on one connection', () => {
    it('are served one after the other, and those behind one whose caller leaves are never begun', async () => {
      const socket = connectTo(lab.gateway)
      const { simulator, gateway } = lab
      socket.write(chatBytes('pipelined-1', chatText('hello')) + chatBytes('pipelined-2', chatText('#hang')))
      socket.write(chatBytes('pipelined-3', chatText('hello')))
      await eventually(() => simulator.requests.length === 2)
      await simulator.requests[1]?.received
      expect(await gateway.logLine('pipelined-1')).toMatchObject({ status: 200 })
      const leftAtMs = performance.now()
      socket.destroy()
      await simulator.idle()
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
      expect(await gateway.logLine('pipelined-2')).toMatchObject({ status: 499 })
      expect(simulator.requests).toHaveLength(2)
    })

    const PIPELINED = 'GET /v1/messages HTTP/1.1\r\nHost: gateway\r\n\r\n'

    it('are all served, up to sixty-four that wait, and no more than one at a time', async () => {
      const { gateway } = lab
      const admission = gateway.application.get(Admission)
      const socket = connectTo(gateway)
      let answers = 0
      let most = 0
      socket.on('data', (chunk: Buffer) => {
        answers += chunk.toString('latin1').split('HTTP/1.1 405 ').length - 1
        most = Math.max(most, admission.underWay)
      })
      socket.write(PIPELINED.repeat(65))
      await eventually(() => answers === 65)
      expect(most).toBeLessThanOrEqual(1)
      socket.destroy()
    })

    it('are too many for a connection beyond those, and it is closed before any is served', async () => {
      const { gateway, simulator } = lab
      const socket = connectTo(gateway)
      socket.on('error', () => undefined)
      socket.write(chatBytes('flood', chatText('#hang')))
      await eventually(() => simulator.requests.length === 1)
      let begun = 0
      gateway.application.get(RequestHooks).onStarted(() => begun++)
      const closed = once(socket, 'close')
      while (!socket.destroyed) {
        if (!socket.write(PIPELINED.repeat(1_000)))
          await Promise.race([once(socket, 'drain'), closed]).catch(() => undefined)
      }
      await simulator.idle()
      expect(begun).toBe(0)
    })

    it('have no answer to what is no request among their responses', async () => {
      const socket = connectTo(lab.gateway)
      socket.on('error', () => undefined)
      let text = ''
      socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
      socket.write(`${chatBytes('before', chatText('#hang'))}${PIPELINED}no request\r\n\r\n`)
      await once(socket, 'close')
      expect(text).not.toContain('HTTP/1.1 400')
    })
  })

  describe('A request in the form a proxy sends', () => {
    it('is judged by the path it names', async () => {
      const answer = await answerTo(`GET http://gateway/v1/messages HTTP/1.1\r\nHost: gateway\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1.1 405 /)
      expect(answer).toContain('"type":"error"')
    })

    it('is served like any other', async () => {
      const request = chatBytes('absolute', chatText('hello'), `http://gateway${CHAT_PATH}`)
      expect(await answerTo(request)).toMatch(/^HTTP\/1.1 200 /)
    })
  })

  describe('A key that is typed where none belongs', () => {
    it.each([
      ['a path', `/v1/${TEST_KEY}/models`, {}],
      ['the id of a task', `/imggen/task/${TEST_KEY}/fetch`, {}],
      ['a path, of a vendor', '/v1/models/sk-proj-abcdef0123456789', {}],
      ['a path, as a header', '/v1/Bearer%20sk-proj-abcdef0123456789', {}],
      ['a path, as a parameter', '/v1/key=sk-proj-abcdef0123456789', {}],
      ['a path, encoded', '/v1/%73k-proj-abcdef0123456789', {}],
      ['a path, as a parameter of the gateway', `/v1/a;key=${TEST_KEY}`, {}],
      ['a path, as a header of the gateway', `/v1/Bearer%20${TEST_KEY}`, {}],
      ['the user of an address', `http://user:${TEST_KEY}@gateway/v1/nothing`, {}],
      ['a request id', '/v1/nothing', { 'x-request-id': TEST_KEY }],
      ['a request id, of a vendor', '/v1/nothing', { 'x-request-id': 'req_sk-proj-abcdef0123456789' }],
    ])('is not in the log: %s', async (_place, path, headers) => {
      const { gateway } = lab
      const written = gateway.logText().length
      const lines = Object.entries({ host: 'gateway', connection: 'close', ...headers }).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      )
      expect(await answerTo(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)).toMatch(/^HTTP\/1.1 40[14] /)
      await eventually(() => gateway.logText().length > written)
      expect(gateway.logText().slice(written)).toContain('"msg":"request"')
      expect(gateway.logText()).not.toMatch(/test-gateway-key|sk-proj-abcdef/)
    })
  })

  describe('A request that others may read in another way', () => {
    it.each([
      'ftp://h/admin\\v1\\keys',
      'http:///admin/v1/keys',
      '/v1\\..\\admin/v1/keys',
      '/health/live#/../admin',
      '*',
    ])('is refused before it is routed: %s', async (target) => {
      const answer = await answerTo(`GET ${target} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1.1 400 [^]*"code":"invalid_target"/)
    })

    it.each([
      ['no host', 'missing_host', '1.1', ''],
      ['an empty host', 'missing_host', '1.1', 'Host: \r\n'],
      ['two hosts', 'repeated_host', '1.1', 'Host: gateway\r\nHOST: other\r\n'],
      ['a host twice', 'repeated_host', '1.1', 'Host: gateway\r\nAccept: */*\r\nhost: gateway\r\n'],
      ['two hosts, the first empty', 'repeated_host', '1.1', 'Host: \r\nHost: gateway\r\n'],
      ['two hosts, as no version allows', 'repeated_host', '1.0', 'Host: gateway\r\nHost: other\r\n'],
    ])('is refused where it names %s', async (_hosts, code, version, headers) => {
      const answer = await answerTo(`GET /v1/models HTTP/${version}\r\n${headers}Connection: close\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1.1 400 /)
      expect(answer).toContain(`"code":"${code}"`)
    })

    it('is served by the path that it names, with or without one', async () => {
      const get = (target: string): Promise<string> =>
        answerTo(`GET ${target} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n`)
      expect(await get('HTTP://gateway:80/health/live?x=1')).toMatch(/^HTTP\/1.1 200 /)
      expect(await get('http://gateway?x=1')).toMatch(/^HTTP\/1.1 200 [^]*Multi-Model Gateway/)
    })
  })

  describe('A request with oddities that do not concern the gateway', () => {
    it.each([
      ['no Host, as HTTP/1.0 allows', 'GET /health/live HTTP/1.0\r\n\r\n', 200],
      ['an empty Host, as HTTP/1.0 allows', 'GET /health/live HTTP/1.0\r\nHost:\r\n\r\n', 200],
      ['an unknown expectation', 'GET /health/live HTTP/1.1\r\nHost: gateway\r\nExpect: miracles\r\n\r\n', 200],
      ['the method CONNECT', 'CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n', 400],
    ])('gets an answer with a body and a request id (%s)', async (_name, text, status) => {
      const answer = await answerTo(text)
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      expect(answer).toMatch(/x-request-id: req_[0-9a-f]{32}/)
      expect(answer).toMatch(/\r\n\r\n\{/)
    })
  })

  describe('What never becomes a request', () => {
    it('is refused in the dialect of the path it named', async () => {
      const answer = await answerTo('GET /v1/messages HTTP/1.1\r\nHost: gateway\r\nbroken header\r\n\r\n')
      expect(answer).toMatch(/^HTTP\/1.1 400 /)
      expect(answer).toContain('{"type":"error","error":{"type":"invalid_request_error"')
    })

    it.each([
      ['POST /v1/document/parse', 'content-type: application/pdf', '{"code":1201,'],
      ['POST /v1/document/parse?timeout=1', 'content-type: application/json', '{"code":1201,'],
      ['POST /v1/messages', 'content-type: application/json', '{"type":"error",'],
      ['POST http://gateway/v1/messages', 'content-type: application/json', '{"type":"error",'],
    ])(
      'is refused in the dialect of its path when its client ends its side within the body: %s %s',
      async (line, type, begins) => {
        const socket = connectTo(lab.gateway, { allowHalfOpen: true })
        socket.end(
          `${line} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${TEST_KEY}\r\n${type}\r\ncontent-length: 99\r\n\r\n{"half`,
        )
        const chunks: Buffer[] = []
        for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
        const answer = Buffer.concat(chunks).toString()
        expect(answer).toMatch(/^HTTP\/1.1 400 /)
        expect(answer.split('\r\n\r\n')[1]).toMatch(new RegExp(`^${begins.replace('{', '\\{')}`))
      },
    )

    it('does not keep its connection when its client never ends it', async () => {
      const accepted = once(lab.gateway.server, 'connection') as Promise<[Socket]>
      const socket = connectTo(lab.gateway, { allowHalfOpen: true })
      socket.write('GARBAGE\r\n\r\n')
      socket.resume()
      const [connection] = await accepted
      await once(connection, 'close')
      socket.destroy()
    })
  })

  interface Conversation {
    readonly socket: Socket
    readonly heard: () => string
    /** Resolves once what was heard holds the pattern, or the other side has closed. */
    readonly hear: (pattern: RegExp) => Promise<string>
  }

  async function converse(lines: readonly string[]): Promise<Conversation> {
    const socket = connectTo(lab.gateway)
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      socket.emit('heard')
    })
    await once(socket, 'connect')
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    return {
      socket,
      heard: () => text,
      hear: async (pattern) => {
        while (!pattern.test(text) && !socket.closed) await Promise.race([once(socket, 'heard'), once(socket, 'close')])
        return text
      },
    }
  }

  const bearer = `authorization: Bearer ${TEST_KEY}`
  const upgrade = (path: string, ...more: string[]): string[] => [
    `GET ${path} HTTP/1.1`,
    'host: gateway',
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    ...more,
  ]
  const bodyOf = (answer: string): unknown => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))

  describe('an upgrade', () => {
    it.each([
      ['to realtime without a model', '/v1/realtime', [bearer]],
      ['to an unknown path', '/v1/nowhere', [bearer]],
      ['to an unknown path without a key', '/nowhere', []],
      ['to a path of plain requests', '/v1/models', [bearer]],
    ])('%s is answered with a status and, when it is an error, with JSON', async (_name, path, headers) => {
      const { hear, socket } = await converse(upgrade(path, ...headers))
      const answer = await hear(/\}\s*$/)
      socket.destroy()
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
      expect(status).not.toBe(101)
      expect(answer).toMatch(/\r\ncontent-type: application\/json/i)
      expect(answer).toMatch(/\r\nx-request-id: /i)
      const expected =
        path === '/v1/models' ? { object: 'list' } : { error: { message: expect.any(String), code: expect.anything() } }
      expect(bodyOf(answer)).toMatchObject(expected)
      if (path !== '/v1/models') expect(status).toBeGreaterThanOrEqual(400)
    })
  })

  const upload = multipartBytes(form({ model: 'whisper-1' }))
  const posting = (path: string, length: number, ...more: string[]): string[] => [
    `POST ${path} HTTP/1.1`,
    'host: gateway',
    'expect: 100-continue',
    'connection: close',
    `content-length: ${length}`,
    ...more,
  ]

  describe('a client who waits for 100 Continue', () => {
    it.each([
      ['a chat completion', CHAT_PATH, 'content-type: application/json', Buffer.from(chatText('Hello'))],
      ['a transcription', TRANSCRIPTIONS, `content-type: ${MULTIPART['content-type']}`, upload],
    ])('sends %s once it is told to go on', async (_name, path, contentType, body) => {
      const { socket, hear, heard } = await converse(posting(path, body.length, bearer, contentType))
      await hear(/100 Continue\r\n\r\n/)
      expect(heard()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
      socket.write(body)
      expect(await hear(/\r\n\r\n\{[^]*\}$/)).toMatch(/HTTP\/1\.1 200 OK/)
      expect(lab.simulator.requests).toHaveLength(1)
    })

    it.each([
      ['without a key', 401, [] as string[], 100],
      ['with an unknown key', 401, ['authorization: Bearer unknown'], 100],
      ['with a body too large', 413, [bearer], 100_000_000],
      ['with a compressed body', 415, [bearer, 'content-encoding: gzip'], 100],
      ['with another content type', 415, [bearer], 100],
    ])('%s is refused with %i before it sends anything', async (name, status, headers, length) => {
      for (const [path, contentType] of [
        [CHAT_PATH, 'application/json'],
        [TRANSCRIPTIONS, MULTIPART['content-type']],
      ] as const) {
        const type = name.includes('content type') ? 'text/plain' : contentType
        const { socket, hear, heard } = await converse(posting(path, length, ...headers, `content-type: ${type}`))
        await hear(/\}$/)
        socket.destroy()
        expect(heard()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
        expect(heard()).not.toContain('100 Continue')
        expect(bodyOf(heard())).toMatchObject({ error: { type: expect.any(String) } })
      }
      expect(lab.simulator.requests).toEqual([])
    })
  })
})

describe('request faults', () => {
  const LIMIT_BYTES = 20_000

  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({ sections: { limits: { jsonBodyBytes: LIMIT_BYTES } } })))

  const GOOD: Readonly<Record<string, string>> = {
    [CHAT_PATH]: chatText('Hello'),
    [SPEECH_PATH]: speechText('Hello', { response_format: 'pcm' }),
  }
  const refused = (request: RawRequest, refusal: Refusal): Promise<void> => expectRefused(lab, request, refusal)
  const withMember = (path: string, member: string): string => (GOOD[path] ?? '').replace(/}$/, `,${member}}`)

  describe.each([CHAT_PATH, SPEECH_PATH])('a body sent to %s', (path) => {
    it.each([
      ['empty', ''],
      ['not JSON', 'model=tts-1'],
      ['cut off', '{"model":"tts-1","input":'],
      ['followed by more', `${GOOD[path] ?? ''}{}`],
      ['with a trailing comma', withMember(path, '')],
      ['a list', '[]'],
      ['a string', '"Hello"'],
      ['null', 'null'],
      ['invalid UTF-8', Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])],
      ['UTF-16', Buffer.from('{"model":"tts-1"}', 'utf16le')],
    ])('is refused when it is %s', async (_name, body) => {
      await refused({ path, body }, { status: 400, code: 'invalid_json' })
    })

    it('is refused when it is nested deeper than 64 levels, and not when it is 64 deep', async () => {
      const deep = (levels: number): string => withMember(path, `"metadata":${nested(levels - 1)}`)
      await refused({ path, body: deep(65) }, { status: 400, code: 'json_too_deep' })
      const brackets = withMember(path, `"metadata":${'['.repeat(9_000)}`)
      await refused({ path, body: brackets }, { status: 400, code: 'json_too_deep' })
      expect((await sendRaw(lab.gateway.url, { path, body: deep(64) })).text).not.toContain('json_too_deep')
    })

    it.each(['"model":"other"', '"mod\\u0065l":"other"', '"input":"x","input":"y"'])(
      'is refused when %s repeats a key',
      async (member) => {
        const param = member.includes('input') ? 'input' : 'model'
        await refused({ path, body: withMember(path, member) }, { status: 400, code: 'duplicate_key', param })
      },
    )

    it.each(['__proto__', 'constructor', 'prototype', '\\u005f_proto__'])(
      'is refused when it holds the key %s',
      async (key) => {
        const param = key.replace('\\u005f', '_')
        for (const member of [`"${key}":{"x":1}`, `"metadata":{"a":[{"${key}" : 1}]}`]) {
          await refused({ path, body: withMember(path, member) }, { status: 400, code: 'forbidden_key', param })
        }
      },
    )

    it.each([
      ['announced by its length', {}],
      ['that only shows itself while it arrives', { 'transfer-encoding': 'chunked' }],
    ])('is refused with 413 when it is too large, %s', async (_name, headers) => {
      const body = withMember(path, `"user":"${'x'.repeat(LIMIT_BYTES)}"`)
      await refused({ path, body, headers }, { status: 413, code: 'payload_too_large' })
    })

    it.each([
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'multipart/form-data; boundary=x' },
      { 'content-type': 'application/jsonp' },
      { 'content-type': 'application/json; charset=iso-8859-1' },
      { 'content-type': undefined },
      { 'content-encoding': 'gzip' },
    ])('is refused with 415 when its headers are %j', async (headers) => {
      await refused({ path, body: GOOD[path] ?? '', headers }, { status: 415, code: 'unsupported_media_type' })
    })

    it.each(['application/json; charset=UTF-8', 'Application/JSON', 'application/json;charset="utf-8"'])(
      'is read when its media type is %s',
      async (type) => {
        const headers = { 'content-type': type }
        expect((await sendRaw(lab.gateway.url, { path, body: GOOD[path] ?? '', headers })).status).toBe(200)
      },
    )
  })

  describe('a path', () => {
    it.each([CHAT_PATH, SPEECH_PATH])('%s answers 405 and what it allows to any other method', async (path) => {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
        await refused({ method, path }, { status: 405, code: 'method_not_allowed' })
        expect((await sendRaw(lab.gateway.url, { method, path })).headers['allow']).toBe('POST')
      }
    })

    it('that is named in full allows what it has, and not what an id in its place would', async () => {
      const allowed = async (path: string): Promise<unknown> =>
        (await sendRaw(lab.gateway.url, { method: 'PUT', path })).headers['allow']
      expect(await allowed('/v1/responses/input_tokens')).toBe('POST')
      expect(await allowed('/v1/responses/resp_1')).toBe('DELETE, GET, HEAD')
    })

    it.each([
      '/v1/unknown',
      '/v1',
      '/chat/completions',
      `${CHAT_PATH}/`,
      '/V1/chat/completions',
      '/v1/Chat/completions',
      '/v1//chat/completions',
      `${SPEECH_PATH}/`,
      '/v1/audio/Speech',
      '/v1/audio',
    ])('%s is unknown', async (path) => {
      await refused({ path, body: chatText('Hello') }, { status: 404, code: 'not_found' })
    })

    it('is found whatever its query', async () => {
      const answer = await sendRaw(lab.gateway.url, {
        path: `${CHAT_PATH}?api-version=1&x[__proto__]=1`,
        body: chatText('Hello'),
      })
      expect(answer.status).toBe(200)
      expect([...(lab.simulator.lastRequest?.query.keys() ?? [])]).toEqual([])
    })

    it('that is no URL is refused as JSON too', async () => {
      const answer = await sendRaw(lab.gateway.url, { path: '/v1/models/%E0%A4%A', method: 'GET' })
      expect(answer.status).toBe(400)
      expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error', param: null })
    })
  })
})

describe('abort', () => {
  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({ withSecond: true })))

  /** The request on a socket of the caller's own, which can be destroyed at any moment. */
  function sendOnSocket({ path, body }: LastingCall, requestId: string, length = Buffer.byteLength(body)): Socket {
    const socket = connectTo(lab.gateway)
    const head = [
      `POST ${path} HTTP/1.1`,
      'host: gateway',
      `authorization: Bearer ${TEST_KEY}`,
      'content-type: application/json',
      `content-length: ${length}`,
      `x-request-id: ${requestId}`,
    ]
    socket.resume().write(`${head.join('\r\n')}\r\n\r\n${body}`)
    return socket
  }

  describe('a caller who destroys the connection', () => {
    it.each(LASTING_CALLS)('$name ends the work of the upstream within a second', async (call) => {
      const requestId = `left-${call.name.replaceAll(' ', '-')}`
      lab.simulator.queueFault(call.fault)
      const elapsedMs = await timeAbort(lab.simulator, () => {
        const socket = sendOnSocket(call, requestId)
        return () => socket.destroy()
      })
      expect(elapsedMs).toBeLessThan(promised(ABORT_LIMIT_MS))
      expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499, channel: 'first', attempts: 1 })
      // The channel is not marked: the next call goes to it, not to the second one.
      expect((await ask(lab.gateway)).status).toBe(200)
      expect([lab.simulator.requests.length, lab.second.requests.length]).toEqual([2, 0])
    })

    it('before the body is whole never reaches an upstream', async () => {
      const begun = once(lab.gateway.server, 'request')
      const [call] = LASTING_CALLS as readonly [LastingCall]
      const socket = sendOnSocket(call, 'left-half', 1_000_000)
      await begun
      socket.destroy()
      expect(await lab.gateway.logLine('left-half')).toMatchObject({ status: 499, attempts: 0 })
      expect(lab.simulator.requests).toEqual([])
    })
  })

  describe.each(OPENAI_CLIENTS)('a caller who aborts with %s', (_name, makeClient) => {
    it('ends the work of the upstream before the answer', async () => {
      lab.simulator.queueFault('hang')
      const controller = new AbortController()
      const elapsedMs = await timeAbort(lab.simulator, () => {
        const { signal } = controller
        const wanted = makeClient(lab.gateway).chat.completions.create(chat('Hello'), { signal })
        wanted.catch(() => undefined)
        return () => {
          controller.abort()
        }
      })
      expect(elapsedMs).toBeLessThan(promised(ABORT_LIMIT_MS))
    })

    it('ends the work of the upstream in the middle of a stream', async () => {
      lab.simulator.queueFault('stall')
      const stream = await makeClient(lab.gateway).chat.completions.create({ ...chat('#chunks=20'), stream: true })
      const aborted = lab.simulator.nextAbort()
      for await (const chunk of stream) {
        expect(chunk.object).toBe('chat.completion.chunk')
        break
      }
      const leftAtMs = performance.now()
      stream.controller.abort()
      await aborted
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
    })
  })

  describe('many callers who leave', () => {
    it('leave no request and no socket behind', async () => {
      const call = LASTING_CALLS[3] as LastingCall
      const leaveOnce = async (): Promise<void> => {
        lab.simulator.queueFault('stall')
        const aborted = lab.simulator.nextAbort()
        await readAndLeave(lab.gateway.url, call)
        await aborted
      }
      await leaveOnce()
      const openBefore = lab.simulator.openConnections
      for (let left = 0; left < 50; left++) await leaveOnce()
      await lab.simulator.idle()
      expect(lab.simulator.activeRequests).toBe(0)
      expect(lab.simulator.openConnections).toBeLessThanOrEqual(openBefore + 1)
    })
  })
})
