import { once } from 'node:events'
import type { Anthropic } from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Fault, FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import { SHORT_TIMEOUTS } from '../support/failing-calls.js'
import { lastRequest, openRaw, type RawAnswer, type RawRequest, sendRaw, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { askLimits } from '../support/limited-gateway.js'
import {
  ANTHROPIC_CLIENTS,
  COUNT_TOKENS,
  expectError,
  type M1Gateway,
  message,
  MESSAGES,
  type MessagesError,
  messageText,
  startM1Gateway,
} from '../support/m1-gateway.js'
import { UPSTREAM_KEY, withLab } from '../support/provider-gateways.js'

const LIMITED_KEY = 'limited-gateway-key'

describe('messages', () => {
  const keys = [
    { id: 'test', key: TEST_KEY },
    { id: 'limited', key: LIMITED_KEY, models: ['claude-haiku-*'] },
  ]

  let lab: M1Gateway
  /** Waits half a second for an upstream that says nothing; only for faults that are nothing but silence. */
  let impatient: M1Gateway
  shareLab(async () => (lab = await startM1Gateway({ keys, sections: { limits: { jsonBodyBytes: 20_000 } } })))
  shareLab(async () => (impatient = await startM1Gateway({ channel: SHORT_TIMEOUTS })))
  afterAll(() => {
    expect(lab.gateway.logText()).toContain('"status":502')
    for (const { gateway } of [lab, impatient])
      expect(gateway.logText()).not.toMatch(/canary-key|test-gateway-key|limited-gateway-key/)
  })

  const send = (body: string | Buffer, more: Partial<RawRequest> = {}, target = lab): Promise<RawAnswer> =>
    sendRaw(target.gateway.url, { path: MESSAGES, body, ...more })

  const WEATHER: Anthropic.Tool = {
    name: 'get_weather',
    description: 'Weather by city',
    input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  }
  const THINKING = { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2000 } as const

  /** The version of the API that each client speaks. */
  const VERSIONS = { '@anthropic-ai/sdk 0.137.0': '2023-06-01', '@anthropic-ai/sdk 1.11.0': '2026-10-21' }

  describe.each(ANTHROPIC_CLIENTS)('%s', (name, makeClient) => {
    let client: Anthropic
    beforeAll(() => {
      client = makeClient(lab.gateway)
    })

    it('creates a message with its usage and our request id', async () => {
      const answer = await client.messages.create(message('Hello'))
      expect(answer).toMatchObject({
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-6',
        content: [{ type: 'text', text: 'You said: Hello' }],
        stop_reason: 'end_turn',
        usage: { cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: expect.any(Number) },
      })
      expect(answer._request_id).toMatch(/^req_[0-9a-f]{32}$/)
      expect(lab.simulator.violations).toEqual([])
    })

    it('speaks its own version to the upstream, with the key of the channel', async () => {
      await client.messages.create(message('Hello'))
      const { headers } = lastRequest(lab.simulator)
      expect(headers).toMatchObject({
        'anthropic-version': VERSIONS[name],
        'x-api-key': UPSTREAM_KEY,
        'content-type': 'application/json',
      })
      expect(headers).not.toHaveProperty('authorization')
      expect(JSON.stringify(headers)).not.toMatch(/stainless|test-gateway-key|Anthropic\/JS/)
    })

    it('iterates the raw events of a stream to message_stop', async () => {
      const types: string[] = []
      for await (const event of await client.messages.create({ ...message('#chunks=5'), stream: true })) {
        types.push(event.type)
      }
      expect(types.at(0)).toBe('message_start')
      expect(types.filter((type) => type === 'content_block_delta')).toHaveLength(5)
      expect(types.slice(-2)).toEqual(['message_delta', 'message_stop'])
    })

    it('collects a stream into its final message', async () => {
      const final = await client.messages.stream(message('Hello you')).finalMessage()
      expect(final).toMatchObject({
        content: [{ type: 'text', text: 'You said: Hello you' }],
        stop_reason: 'end_turn',
        usage: { output_tokens: 4 },
      })
    })

    it('thinks, streamed or not, and gets the signature', async () => {
      const plain = await client.messages.create(message('Why?', THINKING))
      expect(plain.content.map(({ type }) => type)).toEqual(['thinking', 'text'])
      const streamed = await client.messages.stream(message('Why?', THINKING)).finalMessage()
      expect(streamed.content[0]).toEqual(plain.content[0])
      expect(streamed.content[0]).toMatchObject({ signature: expect.stringMatching(/.{20}/) })
    })

    it.each([false, true])('completes a loop of tools with thinking (streamed: %s)', async (isStreamed) => {
      const request = { ...message('What is the weather?', THINKING), tools: [WEATHER] }
      const ask = (body: typeof request): Promise<Anthropic.Message> =>
        isStreamed ? client.messages.stream(body).finalMessage() : client.messages.create(body)
      const first = await ask(request)
      expect(first.stop_reason).toBe('tool_use')
      const call = first.content.find((block) => block.type === 'tool_use')
      expect(call).toMatchObject({ name: 'get_weather', input: { city: expect.any(String) } })
      const result = { type: 'tool_result', tool_use_id: call?.id ?? '', content: '21 degrees' } as const
      const messages = [
        ...request.messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [result] },
      ]
      // The upstream refuses thinking that was edited or moved on the way.
      const second = await ask({ ...request, messages } as typeof request)
      expect(second.content.at(-1)).toMatchObject({ type: 'text', text: 'The tools answered: 21 degrees' })
    })

    it('counts tokens', async () => {
      const { input_tokens: tokens } = await client.messages.countTokens({
        model: 'claude-sonnet-4-6',
        messages: [{ role: 'user', content: 'Hello you there' }],
        tools: [WEATHER],
      })
      expect(tokens).toBeGreaterThan(10)
      expect(lab.simulator.lastRequest?.path).toBe(COUNT_TOKENS)
    })

    it('relays beta features: the header, and the query where it sends one', async () => {
      const betas = ['interleaved-thinking-2025-05-14', 'other-2026-01-01']
      const direct = makeClient(lab.simulator, { apiKey: UPSTREAM_KEY })
      for (const to of [direct, client]) await to.beta.messages.create({ ...message('Hello'), betas })
      const [sent, relayed] = lab.simulator.requests
      expect(relayed?.headers['anthropic-beta']).toBe(betas.join(','))
      expect(relayed?.query.toString()).toBe(sent?.query.toString())
    })

    it('ends the work of the upstream when its stream is aborted, and logs the usage so far', async () => {
      lab.simulator.queueFault('stall')
      const aborted = lab.simulator.nextAbort()
      const request = { ...message('#chunks=20'), stream: true } as const
      const { data: stream, request_id: requestId } = await client.messages.create(request).withResponse()
      for await (const event of stream) if (event.type === 'message_start') break
      stream.controller.abort()
      await aborted
      const usage = { units: { input_tokens: expect.any(Number) }, estimated: true }
      expect(await lab.gateway.logLine(String(requestId))).toMatchObject({ status: 499, usage })
    })
  })

  describe('a request', () => {
    it('reaches the upstream byte for byte', async () => {
      const body =
        '{ "stream" :false,"max_tokens":1e2 , "metadata":{"user_id":"12345678901234567890"},\n' +
        '"messages":[{"content":[{"type":"text","text":"h\\u00e9 \\ud83d\\ude00 é","cache_control":{"type":"ephemeral"}}],"role":"user"}],' +
        '"temperature":1.0,"model":"claude-sonnet-4-6","top_k":40,"service_tier":"auto","diagnostics":{"x":1.50,"n":12345678901234567890} }'
      const answer = await send(body)
      expect(answer.status).toBe(200)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
    })

    it('keeps unknown fields and blocks, for the upstream to judge', async () => {
      const body = messageText('Hello', { brand_new_field: [{ a: 1 }] })
      const answer = await send(body)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
      expect(answer.status).toBe(400)
      expect(JSON.parse(answer.text)).toMatchObject({
        error: { message: 'brand_new_field: Extra inputs are not permitted' },
      })
    })

    it('changes nothing but the name the channel gives the model', async () => {
      const channel = { modelMap: { 'claude-sonnet-4-6': 'claude-mapped' } }
      await withLab(startM1Gateway({ channel }), async (mapped) => {
        const body = '{"max_tokens":10, "model" : "claude-sonnet-4-6","messages":[{"role":"user","content":"model"}]}'
        await send(body, {}, mapped)
        expect(mapped.simulator.lastRequest?.body.toString()).toBe(body.replace('claude-sonnet-4-6', 'claude-mapped'))
      })
    })

    it('without a version gets 2023-06-01', async () => {
      await send(messageText('Hello'))
      expect(lab.simulator.lastRequest?.headers['anthropic-version']).toBe('2023-06-01')
      expect(lab.simulator.lastRequest?.headers).not.toHaveProperty('anthropic-beta')
      expect(lab.simulator.lastRequest?.query.toString()).toBe('')
    })

    it.each(['2023-06-01', '2026-10-21', '2099-01-01'])('of version %s has it relayed', async (version) => {
      await send(messageText('Hello'), { headers: { 'anthropic-version': version } })
      expect(lab.simulator.lastRequest?.headers['anthropic-version']).toBe(version)
    })

    it('names the user on whose behalf it is made to the upstream', async () => {
      await send(messageText('Hello'), { headers: { 'anthropic-user-profile-id': 'uprof_1' } })
      expect(lab.simulator.lastRequest?.headers['anthropic-user-profile-id']).toBe('uprof_1')
    })

    it('relays beta features of token counting and drops every other query', async () => {
      const body = '{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"Hi"}]}'
      await send(body, { path: `${COUNT_TOKENS}?beta=true&api_key=canary`, headers: { 'anthropic-beta': 'a-1,b-2' } })
      const { query, headers, path } = lastRequest(lab.simulator)
      expect([path, query.toString(), headers['anthropic-beta']]).toEqual([COUNT_TOKENS, 'beta=true', 'a-1,b-2'])
    })
  })

  describe('an answer', () => {
    it('has the bytes of the upstream, padding and all', async () => {
      const body =
        '{"id":"msg_1", "type":"message","usage":{"input_tokens":1,"output_tokens":12345678901234567890},"x":1.0}  \n'
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
      expect((await send(messageText('Hello'))).text).toBe(body)
    })

    it('streams the very frames of the upstream, with blanks before the brace and without [DONE]', async () => {
      const { text, headers } = await send(messageText('#chunks=30', { stream: true }))
      expect(text).toContain('  }\n\nevent: ')
      expect(text).toMatch(/^event: message_start\ndata: \{/)
      expect(text.match(/^event: content_block_delta$/gm)).toHaveLength(30)
      expect(text).toContain('event: ping\ndata: {"type": "ping"}\n\n')
      expect(text).toMatch(/event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/)
      expect(text).not.toContain('[DONE]')
      expect(headers['content-type']).toBe('text/event-stream; charset=utf-8')
    })

    it('passes frames it does not know, and comments, untouched', async () => {
      const body = [
        'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n',
        ': a comment\n\n',
        'event: brand_new\ndata: {"type":"brand_new"   ,"n":1.0}\n\n',
        'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":7}}\n\n',
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      ].join('')
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'text/event-stream' }, body })
      const answer = await send(messageText('Hello', { stream: true }))
      expect(answer.text).toBe(body)
      expect(await lab.gateway.logLine(String(answer.headers['x-request-id']))).toMatchObject({
        usage: { units: { input_tokens: 3, output_tokens: 7 }, estimated: false },
      })
    })

    it.each([MESSAGES, COUNT_TOKENS])(
      'of %s tells nothing of the account, and carries our request id',
      async (path) => {
        const { headers } = await send(messageText('Hello', path === MESSAGES ? {} : { max_tokens: undefined }), {
          path,
        })
        expect(JSON.stringify(headers)).not.toMatch(/organization|simulated|cloudflare|google|set-cookie|req_011/)
        expect(headers['request-id']).toBe(headers['x-request-id'])
        expect(headers['anthropic-ratelimit-tokens-limit']).toBe('480000')
      },
    )

    it('keeps the request id the caller chose', async () => {
      const { headers } = await send(messageText('Hello'), { headers: { 'x-request-id': 'mine-1' } })
      expect([headers['request-id'], headers['x-request-id']]).toEqual(['mine-1', 'mine-1'])
    })

    it('has its usage logged as the upstream reports it, streamed or not', async () => {
      for (const stream of [false, true]) {
        const { headers } = await send(messageText('Hello you', { stream }))
        const line = await lab.gateway.logLine(String(headers['x-request-id']))
        expect(line).toMatchObject({
          model: 'claude-sonnet-4-6',
          channel: 'first',
          usage: { units: { output_tokens: 4 }, estimated: false },
        })
      }
    })
  })

  const THINK = (budget: unknown, maximum = 4000, type = 'enabled'): string =>
    messageText('Hi', {
      max_tokens: maximum,
      thinking: { type, ...(budget === undefined ? {} : { budget_tokens: budget }) },
    })

  describe('the gateway refuses before the upstream is asked', () => {
    const AUTHENTICATION = 'authentication_error'

    it.each<[string, Partial<RawRequest> & { body: string | Buffer }, number, string?]>([
      ['no key', { body: messageText('Hi'), headers: { authorization: undefined } }, 401, AUTHENTICATION],
      ['an unknown key', { body: messageText('Hi'), headers: { authorization: 'Bearer x' } }, 401, AUTHENTICATION],
      [
        'an unknown x-api-key',
        { body: messageText('Hi'), headers: { authorization: undefined, 'x-api-key': 'x' } },
        401,
        AUTHENTICATION,
      ],
      [
        'a model the key may not use',
        { body: messageText('Hi'), headers: { authorization: `Bearer ${LIMITED_KEY}` } },
        403,
        'permission_error',
      ],
      ['an unknown model', { body: messageText('Hi', { model: 'claude-none' }) }, 404, 'not_found_error'],
      ['a chat model', { body: messageText('Hi', { model: 'gpt-4o' }) }, 404, 'not_found_error'],
      ['a speech model', { body: messageText('Hi', { model: 'tts-1' }) }, 404, 'not_found_error'],
      ['an unknown path', { path: '/v1/messages/none', body: '{}' }, 404, 'not_found_error'],
      ['another method', { method: 'PUT', body: '{}' }, 405, 'invalid_request_error'],
      ['a body too large', { body: messageText('x'.repeat(20_000)) }, 413, 'request_too_large'],
      [
        'another content type',
        { body: messageText('Hi'), headers: { 'content-type': 'text/plain' } },
        415,
        'invalid_request_error',
      ],
      [
        'a compressed body',
        { body: messageText('Hi'), headers: { 'content-encoding': 'gzip' } },
        415,
        'invalid_request_error',
      ],
      ['broken JSON', { body: '{"model":' }, 400],
      ['a second model', { body: messageText('Hi').replace('{', '{"model":"claude-opus-4-5",') }, 400],
      ['no model', { body: messageText('Hi', { model: undefined }) }, 400],
      ['no max_tokens', { body: messageText('Hi', { max_tokens: undefined }) }, 400],
      ['max_tokens -1', { body: messageText('Hi', { max_tokens: -1 }) }, 400],
      ['max_tokens 1.5', { body: messageText('Hi', { max_tokens: 1.5 }) }, 400],
      ['max_tokens as text', { body: messageText('Hi', { max_tokens: '10' }) }, 400],
      ['no messages', { body: messageText('Hi', { messages: undefined }) }, 400],
      ['empty messages', { body: messageText('Hi', { messages: [] }) }, 400],
      ['a message without content', { body: messageText('Hi', { messages: [{ role: 'user' }] }) }, 400],
      ['content of a number', { body: messageText('Hi', { messages: [{ role: 'user', content: 5 }] }) }, 400],
      ['stream as text', { body: messageText('Hi', { stream: 'true' }) }, 400],
      ['thinking as text', { body: messageText('Hi', { thinking: 'enabled' }) }, 400],
      ['thinking without a budget', { body: THINK(undefined) }, 400],
      ['a budget of 1023', { body: THINK(1023) }, 400],
      ['a budget as large as max_tokens', { body: THINK(1024, 1024) }, 400],
      ['a budget over max_tokens', { body: THINK(5000) }, 400],
      ['a budget of 1024.5', { body: THINK(1024.5) }, 400],
      [
        'counting with a budget of 10',
        {
          path: COUNT_TOKENS,
          body: messageText('Hi', { max_tokens: undefined, thinking: { type: 'enabled', budget_tokens: 10 } }),
        },
        400,
      ],
      [
        'counting for an unknown model',
        { path: COUNT_TOKENS, body: messageText('Hi', { max_tokens: undefined, model: 'gpt-4o' }) },
        404,
        'not_found_error',
      ],
    ])('%s', async (_name, { body, ...more }, status, type = 'invalid_request_error') => {
      const answer = await send(body, more)
      expectError(answer, status, type)
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(lab.simulator.requests).toEqual([])
    })

    it('and names the field', async () => {
      expectError(await send(THINK(1023)), 400, 'invalid_request_error', /thinking\.budget_tokens.*1024/)
      const error = await send(messageText('Hi', { max_tokens: undefined }))
      expectError(error, 400, 'invalid_request_error', /max_tokens/)
    })
  })

  describe('the gateway accepts', () => {
    it.each([
      ['a budget one below max_tokens', THINK(1024, 1025), {}],
      ['no output at all, to fill the cache', messageText('Hi', { max_tokens: 0 }), {}],
      ['all that the model can say', messageText('Hi', { max_tokens: 128_000 }), {}],
      ['a larger budget with the beta for it', THINK(5000), { 'anthropic-beta': 'interleaved-thinking-2025-05-14' }],
      ['thinking switched off', THINK(undefined, 100, 'disabled'), {}],
      ['an empty text block list', messageText('Hi', { system: [{ type: 'text', text: 'Be kind.' }] }), {}],
      ['null for what is optional', messageText('Hi', { thinking: null }), {}],
    ])('%s', async (_name, body, headers) => {
      await send(body, { headers })
      expect(lab.simulator.requests).toHaveLength(1)
      expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
    })

    it('adaptive thinking for models that know it', async () => {
      const body = messageText('Hi', { model: 'claude-sonnet-4-6', thinking: { type: 'adaptive' } })
      expect((await send(body)).status).toBe(200)
    })

    it('a key in either header', async () => {
      const headers = { authorization: undefined, 'x-api-key': TEST_KEY }
      expect((await send(messageText('Hi'), { headers })).status).toBe(200)
      expect((await send(messageText('Hi'), { headers: { 'x-api-key': '' } })).status).toBe(200)
    })
  })

  /** How a failed upstream looks to the caller before the first byte. */
  const FAULTS: readonly (readonly [FaultName, number, string, RegExp])[] = [
    ['400', 400, 'invalid_request_error', /^messages: Input should be a valid list$/],
    ['404', 404, 'not_found_error', /^model: this-model$/],
    ['413', 413, 'request_too_large', /^Request exceeds the maximum size$/],
    ['422', 422, 'invalid_request_error', /could not be processed/],
    ['401', 502, 'api_error', /^The upstream/],
    ['402', 502, 'api_error', /^The upstream/],
    ['403', 502, 'api_error', /^The upstream/],
    ['quota', 502, 'api_error', /^The upstream/],
    ['429', 429, 'rate_limit_error', /^The upstream is busy/],
    ['500', 502, 'api_error', /^The upstream failed/],
    ['503', 529, 'overloaded_error', /^The upstream is overloaded/],
    ['529', 529, 'overloaded_error', /^The upstream is overloaded/],
    ['html', 502, 'api_error', /^The upstream/],
    ['malformed', 502, 'api_error', /^The upstream/],
    ['empty', 502, 'api_error', /^The upstream/],
    ['reset', 502, 'api_error', /^The (upstream|connection)/],
    ['hang', 504, 'api_error', /^The upstream/],
  ]

  describe.each([false, true])('an upstream that fails before its first byte (stream: %s)', (stream) => {
    it.each(FAULTS)('with %s is a %i of %s', async (fault, status, type, words) => {
      const target = fault === 'hang' ? impatient : lab
      target.simulator.queueFault(fault)
      // What meets a used connection is sent once more on a new one.
      if (fault === 'reset') target.simulator.queueFault(fault)
      const answer = await send(messageText('Hi', { stream }), {}, target)
      expectError(answer, status, type, words)
      expect(answer.text).not.toMatch(/credit balance|invalid x-api-key|organization|billing/)
      if (fault !== 'reset') expect(target.simulator.requests).toHaveLength(1)
      else expect(target.simulator.requests.length).toBeLessThanOrEqual(2)
    })

    it('with 429 tells when to come again', async () => {
      lab.simulator.queueFault('429')
      expect((await send(messageText('Hi', { stream }))).headers['retry-after']).toBe('2')
    })
  })

  const streamed = (fault: FaultName, target = lab): Promise<RawAnswer> => {
    target.simulator.queueFault(fault)
    return send(messageText('#chunks=20', { stream: true }), {}, target)
  }

  describe('a stream that fails in the middle', () => {
    it("with the upstream's own error event passes that on once, with our request id, and ends", async () => {
      const { text, headers, complete } = await streamed('errorframe')
      expect(complete).toBe(true)
      expect(text.match(/^event: error$/gm)).toHaveLength(1)
      expect(text).not.toContain('event: message_stop')
      const data = JSON.parse(text.slice(text.lastIndexOf('data: ') + 6)) as MessagesError
      expect(data).toMatchObject({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
      expect(data.request_id).toBe(headers['request-id'])
      expect(text).toMatch(/event: error\ndata: \{[^\n]*\}\n\n$/)
    })

    it.each([
      ['cut', 'api_error'],
      ['cleancut', 'api_error'],
      ['stall', 'api_error'],
    ] as const)('by a %s ends in one error event and without message_stop', async (fault, type) => {
      const { text, headers, complete } = await streamed(fault, fault === 'stall' ? impatient : lab)
      expect(complete).toBe(true)
      expect(text).toMatch(/^event: message_start\n/)
      expect(text.match(/^event: error$/gm)).toHaveLength(1)
      expect(text).not.toContain('event: message_stop')
      const frames = text.split('\n\n')
      expect(frames.at(-1)).toBe('')
      const [eventLine, data = ''] = frames.at(-2)?.split('\ndata: ') ?? []
      expect(eventLine).toBe('event: error')
      expect(JSON.parse(data)).toEqual({
        type: 'error',
        error: { type, message: expect.stringMatching(/^The (upstream|connection)/) },
        request_id: headers['request-id'],
      })
      // Every other frame is whole.
      for (const frame of frames.slice(0, -1)) expect(frame).toMatch(/^event: \w+\ndata: \{.*\}$/)
    })

    it.each(ANTHROPIC_CLIENTS)('throws in %s', async (_name, makeClient) => {
      for (const [fault, type] of [
        ['errorframe', 'overloaded_error'],
        ['cut', 'api_error'],
        ['cleancut', 'api_error'],
      ] as const) {
        lab.simulator.queueFault(fault)
        const final = makeClient(lab.gateway).messages.stream(message('#chunks=20')).finalMessage()
        await expect(final).rejects.toMatchObject({ error: { error: { type } } })
      }
    })

    it.each(['cut', 'cleancut', 'stall'] as const)(
      'by a %s is an error before anything is sent when it was no stream',
      async (fault) => {
        const target = fault === 'stall' ? impatient : lab
        target.simulator.queueFault(fault)
        const answer = await send(messageText('Hello there'), {}, target)
        expectError(answer, fault === 'stall' ? 504 : 502, 'api_error')
      },
    )
  })

  describe.each(ANTHROPIC_CLIENTS)('%s without retries', (_name, makeClient) => {
    it.each([
      ['an unknown key', { apiKey: 'unknown' }, {}, undefined, 401, 'AuthenticationError', 'authentication_error'],
      ['a forbidden model', { apiKey: LIMITED_KEY }, {}, undefined, 403, 'PermissionDeniedError', 'permission_error'],
      ['a model of another class', {}, { model: 'gpt-4o' }, undefined, 404, 'NotFoundError', 'not_found_error'],
      ['a bad field', {}, { max_tokens: -1 }, undefined, 400, 'BadRequestError', 'invalid_request_error'],
      ['a refusal of the upstream', {}, {}, '422', 422, 'UnprocessableEntityError', 'invalid_request_error'],
      ['a busy upstream', {}, {}, '429', 429, 'RateLimitError', 'rate_limit_error'],
      ['a failed upstream', {}, {}, '500', 502, 'InternalServerError', 'api_error'],
      ['a channel whose key is bad', {}, {}, '401', 502, 'InternalServerError', 'api_error'],
      ['a channel without credit', {}, {}, 'quota', 502, 'InternalServerError', 'api_error'],
    ] as const)('throws for %s the right error', async (_case, options, fields, fault, status, className, type) => {
      if (fault !== undefined) lab.simulator.queueFault(fault)
      const error: unknown = await makeClient(lab.gateway, options)
        .messages.create(message('Hi', fields))
        .catch((reason: unknown) => reason)
      expect(error).toMatchObject({ status, error: { type: 'error', error: { type } } })
      expect((error as Error).constructor.name).toBe(className)
      const { requestID, error: body } = error as { requestID: string; error: MessagesError }
      expect(requestID).toMatch(/^req_[0-9a-f]{32}$/)
      expect(body.request_id).toBe(requestID)
    })

    it('throws for a body too large', async () => {
      const call = makeClient(lab.gateway).messages.create(message('x'.repeat(30_000)))
      await expect(call).rejects.toMatchObject({ status: 413, error: { error: { type: 'request_too_large' } } })
    })
  })
})

describe('a second channel', () => {
  const send = ({ gateway }: M1Gateway, more: object = {}): Promise<RawAnswer> =>
    sendRaw(gateway.url, { path: MESSAGES, body: messageText('Hi', more) })

  const withTwo = (run: (two: M1Gateway) => Promise<void>): Promise<void> =>
    withLab(startM1Gateway({ withSecond: true }), run)

  it.each(['401', '402', '403', 'quota', '429', '500', '529', 'html', 'malformed', 'reset'] as const)(
    'serves what the first fails with %s',
    async (fault) => {
      await withTwo(async (two) => {
        for (const stream of [false, true]) {
          two.simulator.queueFault(fault)
          const answer = await send(two, { stream })
          expect(answer.status).toBe(200)
          expect(answer.text).toContain(stream ? 'event: message_stop' : 'You said: Hi')
        }
        expect(two.second.requests.length).toBeGreaterThanOrEqual(1)
      })
    },
  )

  describe('that is not needed', () => {
    let two: M1Gateway
    shareLab(async () => (two = await startM1Gateway({ withSecond: true })))

    it.each(['400', '404', '413', '422'] as const)('is not tried for a fault of the caller: %s', async (fault) => {
      two.simulator.queueFault(fault)
      expect((await send(two)).status).toBe(Number(fault))
      expect(two.second.requests).toEqual([])
    })
  })

  it('serves a stream whose first event is an error', async () => {
    await withTwo(async (two) => {
      const body = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
      two.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'text/event-stream' }, body })
      const answer = await send(two, { stream: true })
      expect(answer.text).toContain('event: message_stop')
    })
  })
})

describe('messages large answers', () => {
  const LIMIT = 1000

  /** More than the gateway holds, and more than connections do: its caller can leave in the middle. */
  const LARGE: Fault = {
    kind: 'status',
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: `{"content":[{"type":"text","text":"${'x'.repeat(32_000_000)}"}]}`,
  }

  /** Four characters to a token, and four tokens for the message. */
  const PROMPT = 2 + 4

  let lab: M1Gateway

  const keys = ['leaving', 'staying'].map((id) => ({ id, key: id, limits: { tokensPerMinute: LIMIT } }))
  shareLab(async () => (lab = await startM1Gateway({ keys })))

  /** A question of eight characters, whose caller is known by the same name in the log. */
  const question = (key: string) => ({
    path: MESSAGES,
    body: messageText('Hi there', { max_tokens: 900 }),
    headers: { authorization: `Bearer ${key}`, 'x-request-id': key },
  })

  async function remaining(key: string): Promise<number | undefined> {
    return (await askLimits(lab.gateway.url, key)).limits['tokensPerMinute']?.remaining
  }

  describe('An answer too large to be held, whose upstream says nothing of its use,', () => {
    it('keeps what it reserved when its caller leaves in the middle: only the prompt is known', async () => {
      lab.simulator.queueFault(LARGE)
      const answer = await openRaw(lab.gateway.url, question('leaving'))
      const reservedLeft = await remaining('leaving')
      expect(reservedLeft).toBeLessThanOrEqual(LIMIT - 900)
      await once(answer, 'data')
      answer.destroy()
      const { status, usage } = await lab.gateway.logLine('leaving')
      expect([status, usage]).toEqual([499, { units: { input_tokens: PROMPT }, estimated: true }])
      expect(await remaining('leaving')).toBe(reservedLeft)
    })

    it('has cost its prompt when all of it was read', async () => {
      lab.simulator.queueFault(LARGE)
      const { status, complete } = await sendRaw(lab.gateway.url, question('staying'))
      expect([status, complete]).toEqual([200, true])
      const { usage } = await lab.gateway.logLine('staying')
      expect(usage).toEqual({ units: { input_tokens: PROMPT }, estimated: true })
      expect(await remaining('staying')).toBe(LIMIT - PROMPT)
    })
  })
})

describe('the models of messages clients', () => {
  const keys = [
    { id: 'test', key: TEST_KEY },
    { id: 'limited', key: LIMITED_KEY, models: ['claude-haiku-*'] },
    { id: 'none', key: 'key-for-no-model', models: ['nothing'] },
  ]

  let lab: M1Gateway
  shareLab(async () => (lab = await startM1Gateway({ keys })))

  interface Listing {
    readonly data: readonly { readonly id: string; readonly created_at: string }[]
    readonly has_more: boolean
    readonly first_id: string | null
    readonly last_id: string | null
  }

  const get = (path: string, headers: RawRequest['headers'] = {}): Promise<RawAnswer> =>
    sendRaw(lab.gateway.url, { method: 'GET', path, headers: { 'anthropic-version': '2023-06-01', ...headers } })
  const list = async (query = '', headers: RawRequest['headers'] = {}): Promise<Listing> => {
    const answer = await get(`/v1/models${query}`, headers)
    expect(answer.status).toBe(200)
    return JSON.parse(answer.text) as Listing
  }
  const idsOf = ({ data }: Listing): string[] => data.map(({ id }) => id)

  it.each([
    ['anthropic-version', { 'anthropic-version': '2023-06-01' }],
    ['x-api-key', { 'anthropic-version': undefined, authorization: undefined, 'x-api-key': TEST_KEY }],
  ])('are listed, newest first, for a client that sends %s', async (_name, headers) => {
    const answer = await get('/v1/models?limit=1000', headers)
    const { data, has_more, first_id, last_id } = JSON.parse(answer.text) as Listing
    expect(answer.headers['request-id']).toBe(answer.headers['x-request-id'])
    expect([has_more, first_id, last_id]).toEqual([false, data[0]?.id, data.at(-1)?.id])
    const dates = data.map((model) => model.created_at)
    expect(dates).toEqual([...dates].sort().reverse())
    expect(data).toContainEqual(
      expect.objectContaining({
        type: 'model',
        id: 'claude-sonnet-4-5',
        display_name: 'claude-sonnet-4-5',
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT00:00:00Z$/),
        x_gateway: { class: 'messages', capabilities: ['messages'] },
      }),
    )
    expect(data.every(({ id }) => id.startsWith('claude-'))).toBe(true)
  })

  it('come in pages, forwards and backwards', async () => {
    const all = idsOf(await list('?limit=1000'))
    expect(all.length).toBeGreaterThan(6)
    const first = await list('?limit=3')
    expect([idsOf(first), first.has_more]).toEqual([all.slice(0, 3), true])
    const second = await list(`?limit=3&after_id=${first.last_id}`)
    expect([idsOf(second), second.has_more]).toEqual([all.slice(3, 6), true])
    const back = await list(`?limit=3&before_id=${second.data[0]?.id}`)
    expect([idsOf(back), back.has_more]).toEqual([all.slice(0, 3), false])
    const middle = await list(`?limit=2&before_id=${all[5]}`)
    expect([idsOf(middle), middle.has_more]).toEqual([all.slice(3, 5), true])
    const rest = await list(`?limit=1000&after_id=${all[2]}`)
    expect([idsOf(rest), rest.has_more]).toEqual([all.slice(3), false])
    const behind = await list(`?after_id=${all.at(-1)}`)
    expect(behind).toEqual({ data: [], has_more: false, first_id: null, last_id: null })
  })

  it('are those of the key', async () => {
    const limited = idsOf(await list('', { authorization: `Bearer ${LIMITED_KEY}` }))
    expect([limited.length > 0, limited.every((id) => id.startsWith('claude-haiku-'))]).toEqual([true, true])
    expect(await list('', { authorization: 'Bearer key-for-no-model' })).toMatchObject({ data: [], first_id: null })
  })

  it.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=3&limit=4', 'limit'],
    ['limit=x', 'limit'],
    ['after_id=no-such-model', 'after_id'],
    ['before_id=gpt-4o', 'before_id'],
    ['after_id=', 'after_id'],
    ['after_id=claude-sonnet-4-5&before_id=claude-sonnet-4-5', 'before_id'],
  ])('are not listed for %s: the message names %s', async (query, name) => {
    const answer = await get(`/v1/models?${query}`)
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text)).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: expect.stringContaining(name) },
      request_id: answer.headers['request-id'],
    })
  })

  it('do not have others among them', async () => {
    const answer = await get('/v1/models/no-such-model')
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text)).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
  })

  it('are closed to strangers, in the form of the client', async () => {
    const answer = await get('/v1/models', { authorization: undefined, 'x-api-key': 'unknown' })
    expect(answer.status).toBe(401)
    expect(JSON.parse(answer.text)).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
  })

  it('are not shown to clients of the chat dialect, which learn where they are', async () => {
    const headers = { 'anthropic-version': undefined }
    expect(JSON.parse((await get('/v1/models', headers)).text)).toEqual({ object: 'list', data: [] })
    const answer = await get('/v1/models/claude-sonnet-4-5', headers)
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { code: 'model_not_found', message: expect.stringContaining('anthropic-version') },
    })
  })

  it('that do not exist at any path are not found in the form of the client', async () => {
    const answer = await get('/v1/v1/messages')
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text)).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
  })

  describe.each(ANTHROPIC_CLIENTS)('with %s', (_name, makeClient) => {
    it.each([{ apiKey: TEST_KEY }, { apiKey: null, authToken: TEST_KEY }])(
      'are read page after page, and one by one, with %j',
      async (key) => {
        const client = makeClient(lab.gateway, key)
        const ids: string[] = []
        for await (const { id } of client.models.list({ limit: 2 })) ids.push(id)
        expect(ids).toEqual(idsOf(await list('?limit=1000')))
        expect(await client.models.retrieve('claude-sonnet-4-5')).toMatchObject({
          type: 'model',
          id: 'claude-sonnet-4-5',
        })
        await expect(client.models.retrieve('no-such-model')).rejects.toMatchObject({ status: 404 })
      },
    )
  })
})
