import { afterEach, describe, expect, it } from '@jest/globals'
import type { FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { timeAbort } from '../support/failing-calls.js'
import { type RawAnswer, sendRaw, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { scrapable, type Scrape, type Scraper, startScraper, valueOf } from '../support/prometheus-text.js'
import { withLab } from '../support/provider-gateways.js'
import {
  CHAT_MODEL,
  CHAT_ONLY_MODEL,
  MESSAGES_MODEL,
  startTranslationLab,
  STRICT_KEY,
  TRANSLATION_PRICES,
  type TranslationLab,
} from '../support/translation-gateway.js'
import { recordWhere } from '../support/usage-lab.js'

let lab: TranslationLab
let scraper: Scraper
shareLab(async () => {
  const sections = {
    database: {},
    prices: TRANSLATION_PRICES,
    limits: { jsonBodyBytes: 50_000 },
    ...(await scrapable()),
  }
  return (lab = await startTranslationLab(sections))
})
shareLab(async () => (scraper = await startScraper(lab.gateway.application)))

interface Pair {
  readonly dialects: string
  readonly model: string
  readonly path: string
  readonly upstream: () => Simulator
  readonly body: (text: string, more?: object) => string
}

const bodyOf =
  (model: string, textField: 'messages' | 'input', more: object = {}) =>
  (text: string, changes: object = {}): string => {
    const said = textField === 'input' ? text : [{ role: 'user', content: text }]
    return JSON.stringify({ model, [textField]: said, ...more, ...changes })
  }

const PAIRS: readonly Pair[] = [
  {
    dialects: 'chat over messages',
    model: MESSAGES_MODEL,
    path: '/v1/chat/completions',
    upstream: () => lab.m1,
    body: bodyOf(MESSAGES_MODEL, 'messages', { max_completion_tokens: 100 }),
  },
  {
    dialects: 'messages over chat',
    model: CHAT_MODEL,
    path: '/v1/messages',
    upstream: () => lab.p1,
    body: bodyOf(CHAT_MODEL, 'messages', { max_tokens: 100 }),
  },
  {
    dialects: 'responses over messages',
    model: MESSAGES_MODEL,
    path: '/v1/responses',
    upstream: () => lab.m1,
    body: bodyOf(MESSAGES_MODEL, 'input', { max_output_tokens: 100, store: false }),
  },
  {
    dialects: 'responses over chat',
    model: CHAT_ONLY_MODEL,
    path: '/v1/responses',
    upstream: () => lab.p1,
    body: bodyOf(CHAT_ONLY_MODEL, 'input', { max_output_tokens: 100, store: false }),
  },
]

const ask = ({ path }: Pair, body: string, headers: object = {}): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, { path, body, headers: { authorization: `Bearer ${TEST_KEY}`, ...headers } })

const SAID = [{ role: 'user', content: 'Hello' }]
const ASKED: Readonly<Record<string, readonly [path: string, fields: object]>> = {
  chat: ['/v1/chat/completions', { messages: SAID, max_completion_tokens: 2000 }],
  messages: ['/v1/messages', { messages: SAID, max_tokens: 2000 }],
  responses: ['/v1/responses', { input: 'Hello', max_output_tokens: 2000, store: false }],
}

const REQUESTS = 'gateway_requests_total'
const TRANSLATED = 'gateway_translated_requests_total'

const VENDORS_TOOL = { tools: [{ type: 'web_search' }] }

/** The last event or chunk of each dialect, by which a client knows that an answer is whole. */
const END = /data: \[DONE\]|event: message_stop|event: response\.(completed|incomplete)/

describe.each(PAIRS)('A request for $dialects', (pair) => {
  const { dialects, model, path, body, upstream } = pair

  afterEach(() => {
    upstream().reset()
  })

  it('is counted by its dialects, and one that needs no translation is not', async () => {
    const [ownPath, fields] = ASKED[dialects.split(' over ')[1] ?? ''] ?? ['', {}]
    const before = await scraper.scrape()
    const untilOneMoreAt = (route: string): Promise<Scrape> => {
      const labels = { route, method: 'POST', status: '200', outcome: 'ok' }
      return scraper.untilValue(REQUESTS, labels, (valueOf(before, REQUESTS, labels) ?? 0) + 1)
    }
    expect((await sendRaw(lab.gateway.url, { path: ownPath, body: JSON.stringify({ model, ...fields }) })).status).toBe(
      200,
    )
    expect(valueOf(await untilOneMoreAt(ownPath), TRANSLATED, { dialects })).toBeUndefined()
    expect((await ask(pair, body('Hello'))).status).toBe(200)
    expect(valueOf(await untilOneMoreAt(path), TRANSLATED, { dialects })).toBe(1)
    await ask(pair, body('Hello', { stream: true }))
    await scraper.untilValue(TRANSLATED, { dialects }, 2)
  })

  it('says so in its answer, its log line and its usage record, and costs what the upstream counts', async () => {
    const answer = await ask(pair, body('Hello there', { metadata: { a: 'b' }, x_later: 1 }))
    expect([answer.status, answer.headers['x-gateway-dialect']]).toEqual([200, dialects])
    const dropped = String(answer.headers['x-gateway-dropped'])
    expect(dropped.split(',')).toContain('x_later')
    const requestId = String(answer.headers['x-request-id'])
    expect(await lab.gateway.logLine(requestId)).toMatchObject({ translation: dialects, status: 200 })
    const record = await recordWhere(lab.gateway, ({ request_id: id }) => id === requestId)
    expect(record).toMatchObject({
      route: path,
      outcome: 'ok',
      pricing: 'priced',
      translation: { dialects, dropped, approximated: answer.headers['x-gateway-approximated'] ?? null },
    })
    const served = upstream().served.answers[model]?.at(-1)
    expect(record.units).toMatchObject({
      prompt_tokens: served?.['promptTokens'],
      completion_tokens: served?.['completionTokens'],
    })
  })

  it.each([
    ['the header', { 'x-gateway-translation': 'strict' }],
    ['its key', { authorization: `Bearer ${STRICT_KEY}` }],
  ])('is refused for a field that would be dropped where %s is strict', async (_what, headers) => {
    const answer = await ask(pair, body('Hello', { x_later: 1 }), headers)
    expect([answer.status, answer.headers['x-gateway-dialect']]).toEqual([400, dialects])
    expect(answer.text).toContain("'x_later'")
    expect(upstream().requests).toEqual([])
    expect((await ask(pair, body('Hello'), headers)).status).toBe(200)
  })

  it.each(['Strict', 'lenient', ''])(
    'is refused where the header asks for what it does not know: "%s"',
    async (wish) => {
      const answer = await ask(pair, body('Hello'), { 'x-gateway-translation': wish })
      expect(answer.status).toBe(400)
      expect(answer.text).toContain("can only be 'strict'")
      const { error } = JSON.parse(answer.text) as { error: object }
      if (path !== '/v1/messages')
        expect(error).toMatchObject({ param: 'x-gateway-translation', code: 'invalid_value' })
      expect(upstream().requests).toEqual([])
      const authorization = 'Bearer sk-of-a-stranger'
      const stranger = await ask(pair, body('Hello'), { 'x-gateway-translation': wish, authorization })
      expect([stranger.status, stranger.text]).toEqual([401, expect.not.stringContaining('strict')])
    },
  )

  it.each<[FaultName, number]>([
    ['429', 429],
    ['500', 502],
    ['503', path === '/v1/messages' ? 529 : 503],
    ['529', path === '/v1/messages' ? 529 : 503],
    ['html', 502],
    ['malformed', 502],
    ['empty', 502],
    ['reset', 502],
    ['cut', 502],
  ])('whose upstream fails (%s) is answered in its own dialect: %d', async (fault, status) => {
    const answer = await ask(pair, body(`#${fault}`))
    expect(answer.status).toBe(status)
    const { error, type, request_id: requestId } = JSON.parse(answer.text) as Record<string, unknown>
    expect(error).toMatchObject({ type: expect.any(String), message: expect.any(String) })
    expect([type, requestId]).toEqual(
      path === '/v1/messages' ? ['error', answer.headers['x-request-id']] : [undefined, undefined],
    )
    expect(answer.text).not.toMatch(/canary|org-simulated|127\.0\.0\.1/)
  })

  it.each<FaultName>(['cut', 'cleancut', 'errorframe'])(
    'never ends like a whole one when its stream is spoiled: %s',
    async (fault) => {
      const answer = await ask(pair, body(`#${fault} #chunks=40`, { stream: true }))
      expect(answer.text).not.toMatch(END)
      expect(answer.text).toMatch(/"error"/)
      expect(answer.complete).toBe(true)
    },
  )

  it.each<FaultName>(['429', 'html', 'empty', 'reset'])(
    'that is streamed and fails before its first event has a status: %s',
    async (fault) => {
      const answer = await ask(pair, body(`#${fault}`, { stream: true }))
      expect(answer.status).toBe(fault === '429' ? 429 : 502)
      expect(answer.headers['content-type']).toBe('application/json')
    },
  )

  it.each([false, true])('whose client leaves ends the work of the upstream; streamed: %s', async (isStreamed) => {
    const tookMs = await timeAbort(upstream(), () => {
      const leaving = new AbortController()
      void fetch(new URL(path, lab.gateway.url), {
        method: 'POST',
        headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
        body: body(isStreamed ? '#chunks=40 #hold=5' : '#hang', { stream: isStreamed }),
        signal: leaving.signal,
      }).catch(() => undefined)
      return () => {
        leaving.abort()
      }
    })
    expect(tookMs).toBeLessThan(5_000)
  })
})

describe('A field that the other dialect lacks', () => {
  it.each<[string, number, object, string]>([
    ['choices', 0, { n: 2 }, 'n'],
    ['audio', 0, { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }, 'modalities'],
    ['penalties', 0, { presence_penalty: 1 }, 'presence_penalty'],
    ['log probabilities', 0, { logprobs: true }, 'logprobs'],
    ['tools of the vendor', 1, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, 'tools[0].type'],
    ['top_k', 1, { top_k: 5 }, 'top_k'],
    ['more stop sequences than chat takes', 1, { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }, 'stop_sequences'],
    ['work in the background', 2, { background: true }, 'background'],
    ['tools of the vendor', 2, { tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    ['a prompt that is kept elsewhere', 3, { prompt: { id: 'pmpt_1' } }, 'prompt'],
  ])('is refused before any upstream is called: %s', async (_what, pairIndex, more, param) => {
    const pair = PAIRS[pairIndex]
    if (pair === undefined) throw new Error('no such pair')
    pair.upstream().reset()
    const answer = await ask(pair, pair.body('Hello', more))
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(`'${param}'`)
    if (pair.path !== '/v1/messages') {
      expect((JSON.parse(answer.text) as { error: object }).error).toMatchObject({ param, code: 'unsupported_value' })
    }
    expect(pair.upstream().requests).toEqual([])
  })
})

describe('Messages over chat', () => {
  const pair = PAIRS[1]
  if (pair === undefined) throw new Error('no such pair')

  it('say that the tokens of the first event are an estimate', async () => {
    const answer = await ask(pair, pair.body('Hello', { stream: true }))
    expect(answer.headers['x-gateway-estimated']).toBe('message_start.usage')
  })

  it('show nothing of what is left of the limits of the account', async () => {
    const { headers } = await ask(pair, pair.body('Hello'))
    expect(Object.keys(headers).filter((name) => name.includes('ratelimit') || name.startsWith('openai'))).toEqual([])
  })

  it('are not asked for another user of the upstream', async () => {
    const answer = await ask(pair, pair.body('Hello'), { 'anthropic-user-profile-id': 'uprof_1' })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("'anthropic-user-profile-id'")])
  })

  it('leave out the names of beta features, and say so', async () => {
    lab.p1.reset()
    const answer = await ask(pair, pair.body('Hello'), { 'anthropic-beta': 'context-1m-2025-08-07' })
    expect([answer.status, answer.headers['x-gateway-dropped']]).toEqual([200, 'anthropic-beta'])
    expect(lab.p1.lastRequest?.headers).not.toHaveProperty('anthropic-beta')
    expect((await ask(pair, pair.body('Hello'))).headers).not.toHaveProperty('x-gateway-dropped')
  })

  it.each([
    ['the header', { 'x-gateway-translation': 'strict' }],
    ['its key', { authorization: `Bearer ${STRICT_KEY}` }],
  ])('are refused with a name of a beta feature where %s is strict', async (_what, headers) => {
    lab.p1.reset()
    const answer = await ask(pair, pair.body('Hello'), { 'anthropic-beta': 'context-1m-2025-08-07', ...headers })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("Unsupported value: 'anthropic-beta'.")])
    expect(lab.p1.requests).toEqual([])
  })
})

describe('Tokens that nobody has to be paid for', () => {
  it.each([
    [
      'estimated',
      '/v1/messages/count_tokens',
      { model: CHAT_MODEL, messages: [{ role: 'user', content: 'Hello there' }] },
      'true',
    ],
    ['estimated', '/v1/responses/input_tokens', { model: CHAT_ONLY_MODEL, input: 'Hello there' }, 'true'],
    [
      'counted by the upstream',
      '/v1/responses/input_tokens',
      { model: MESSAGES_MODEL, input: 'Hello there' },
      undefined,
    ],
  ])('are %s at %s', async (_how, path, body, estimated) => {
    const answer = await sendRaw(lab.gateway.url, { path, body: JSON.stringify(body) })
    expect(answer.status).toBe(200)
    expect(answer.headers['x-gateway-estimated']).toBe(estimated)
    expect(JSON.parse(answer.text)).toMatchObject({ input_tokens: expect.any(Number) })
  })
})

const COUNTS: readonly (readonly [string, string, object, object])[] = [
  [
    'messages over chat',
    '/v1/messages/count_tokens',
    { model: CHAT_MODEL, messages: SAID },
    { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  ],
  ['responses over chat', '/v1/responses/input_tokens', { model: CHAT_ONLY_MODEL, input: 'Hello' }, VENDORS_TOOL],
  ['responses over messages', '/v1/responses/input_tokens', { model: MESSAGES_MODEL, input: 'Hello' }, VENDORS_TOOL],
]

describe.each(COUNTS)('Tokens of %s', (dialects, path, body, refused) => {
  const count = (more: object, headers: object = {}): Promise<RawAnswer> =>
    sendRaw(lab.gateway.url, {
      path,
      body: JSON.stringify({ ...body, ...more }),
      headers: { authorization: `Bearer ${TEST_KEY}`, ...headers },
    })

  it('are not counted of a request that would be refused', async () => {
    const answer = await count(refused)
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("'tools[0].type'")])
  })

  it('are counted without what would be dropped, unless the caller is strict', async () => {
    const { status, headers } = await count({ x_later: 1 })
    expect([status, headers['x-gateway-dialect'], headers['x-gateway-dropped']]).toEqual([200, dialects, 'x_later'])
    const strict = await count({ x_later: 1 }, { 'x-gateway-translation': 'strict' })
    expect([strict.status, strict.text]).toEqual([400, expect.stringContaining("'x_later'")])
  })
})

describe('Tokens of messages, on a channel that has them counted by the Responses API', () => {
  it('are those of the upstream, for all that a conversation can hold', async () => {
    await withLab(startTranslationLab({}, { countBy: 'responses' }), async ({ gateway, p1 }) => {
      const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }
      const results = [
        { type: 'text', text: 'sunny' },
        { type: 'image', source },
      ]
      const body = {
        model: CHAT_MODEL,
        system: 'Be brief.',
        tools: [{ name: 'f', input_schema: { type: 'object' } }],
        tool_choice: { type: 'tool', name: 'f' },
        output_config: { format: { type: 'json_schema', schema: { type: 'object', properties: { a: {} } } } },
        messages: [
          { role: 'user', content: 'Weather?' },
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'Wait.' },
              { type: 'tool_use', id: 'a', name: 'f', input: {} },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: results }] },
        ],
      }
      const answer = await sendRaw(gateway.url, { path: '/v1/messages/count_tokens', body: JSON.stringify(body) })
      expect([answer.status, p1.lastRequest?.path]).toEqual([200, '/v1/responses/input_tokens'])
      expect(answer.headers).not.toHaveProperty('x-gateway-estimated')
      expect(JSON.parse(answer.text)).toEqual({ input_tokens: expect.any(Number) })
    })
  })
})

describe('What an upstream refuses', () => {
  const tool = { name: 'not a name', description: 'x' }

  it.each<[string, number, object, string]>([
    ['a tool', 0, { tools: [{ type: 'function', function: tool }] }, 'tools[0].function.name'],
    ['a tool', 2, { tools: [{ type: 'function', ...tool, parameters: {} }] }, 'tools[0].name'],
    ['the maximum', 0, { max_completion_tokens: 1_000_000 }, 'max_completion_tokens'],
    ['the maximum', 2, { max_output_tokens: 1_000_000 }, 'max_output_tokens'],
    ['the user', 3, { safety_identifier: 'x'.repeat(600) }, 'safety_identifier'],
  ])('is told by the name that the caller has for it: %s', async (_what, pairIndex, more, param) => {
    const pair = PAIRS[pairIndex]
    if (pair === undefined) throw new Error('no such pair')
    const answer = await ask(pair, pair.body('Hello', more))
    expect([answer.status, pair.upstream().lastRequest === undefined]).toEqual([400, false])
    expect((JSON.parse(answer.text) as { error: object }).error).toMatchObject({ param })
    pair.upstream().reset()
  })
})

describe('Every model that writes', () => {
  it('is served in every dialect, and refused by no judge', async () => {
    const listed = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models' })
    const models = (JSON.parse(listed.text) as { data: { id: string; x_gateway: { dialects?: string[] } }[] }).data
    const refused: string[] = []
    for (const {
      id,
      x_gateway: { dialects = [] },
    } of models) {
      for (const dialect of dialects) {
        const [path, fields] = ASKED[dialect] ?? ['', {}]
        const { status, text } = await sendRaw(lab.gateway.url, {
          path,
          body: JSON.stringify({ model: id, ...fields }),
        })
        if (status !== 200) refused.push(`${id} ${dialect}: ${text}`)
      }
    }
    expect(refused).toEqual([])
    expect(models.filter(({ x_gateway: { dialects = [] } }) => dialects.length === 3).length).toBeGreaterThan(50)
  })
})

describe('The list of models', () => {
  it('shows each client every model that it can ask', async () => {
    const listed = async (headers: object): Promise<string[]> => {
      const { text } = await sendRaw(lab.gateway.url, {
        method: 'GET',
        path: '/v1/models?limit=1000',
        headers: { authorization: `Bearer ${TEST_KEY}`, ...headers },
      })
      return (JSON.parse(text) as { data: { id: string }[] }).data.map(({ id }) => id)
    }
    expect(await listed({})).toEqual(expect.arrayContaining([CHAT_MODEL, MESSAGES_MODEL]))
    expect(await listed({ 'anthropic-version': '2023-06-01' })).toEqual(expect.arrayContaining([MESSAGES_MODEL]))
  })
})
