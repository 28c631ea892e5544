import { hash } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { toFile } from 'openai'
import { createApplication } from '../../src/app/create-app.js'
import { ConfigStore } from '../../src/config/config-store.js'
import type { GatewayConfig } from '../../src/config/settings.js'
import { createLogging } from '../../src/observability/logger.js'
import { Metrics } from '../../src/observability/metrics.js'
import { RequestHooks } from '../../src/observability/request-hooks.js'
import { parseConfig } from '../support/config.js'
import { eventually } from '../support/eventually.js'
import {
  chat,
  CHAT_PATH,
  chatText,
  type RawAnswer,
  type RawRequest,
  sendRaw,
  SPEECH_PATH,
  speechText,
  startGateway,
  type TestGateway,
} from '../support/gateway.js'
import { KeptAliveClient } from '../support/failing-calls.js'
import { closeAfterEach, shareLab } from '../support/lab-lifetime.js'
import {
  askAs,
  BY_MINUTE,
  inChat,
  inImages,
  inMessages,
  inTasks,
  type LimitedGateway,
  limitHeaders,
  type RefusalBody,
  REQUEST_ID,
  shownLimit,
  startLimitedGateway,
} from '../support/limited-gateway.js'
import { ANTHROPIC_CLIENTS, COUNT_TOKENS, message, MESSAGES, messageText } from '../support/m1-gateway.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { openUpload } from '../support/slow-uploads.js'
import {
  fieldPart,
  filePart,
  MULTIPART,
  multipartBytes,
  sample,
  TRANSCRIPTIONS,
  TRANSLATIONS,
  upload,
  wavOfSeconds,
} from '../support/upload-server.js'

describe('limits', () => {
  const WAV_HEADER_BYTES = 44
  const WAV_BYTES_PER_SECOND = 48_000
  const VIDEOS = '/vidgen/v1/videos/text2video'
  const DOCUMENTS = '/v1/document/parse'
  const TWO_REQUESTS = { requestsPerMinute: 2 }

  let lab: LimitedGateway
  shareLab(
    async () =>
      (lab = await startLimitedGateway({
        reads: { requestsPerMinute: 1 },
        'one-at-once': { concurrency: 1 },
        'five-at-once': { concurrency: 5 },
        free: undefined,
        none: {},
        spent: { requestsPerMinute: 1 },
        full: { requestsPerMinute: 50, concurrency: 1 },
        task: { requestsPerMinute: 3 },
        tokens: { tokensPerMinute: 1000 },
        held: { tokensPerMinute: 1000 },
        failing: { tokensPerMinute: 1000 },
        streaming: { tokensPerMinute: 100_000, concurrency: 2 },
        speech: { audioSecondsPerMinute: 10 },
        spoken: { audioSecondsPerMinute: 100 },
        transcription: { audioSecondsPerMinute: 3, tokensPerMinute: 1000 },
        guessed: { audioSecondsPerMinute: 1, tokensPerMinute: 10 },
        never: { tokensPerMinute: 100 },
        parallel: { tokensPerMinute: 5000 },
        'openai-0': TWO_REQUESTS,
        'openai-1': TWO_REQUESTS,
        'anthropic-0': { ...TWO_REQUESTS, tokensPerMinute: 5000 },
        'anthropic-1': { ...TWO_REQUESTS, tokensPerMinute: 5000 },
        families: { requestsPerMinute: 1 },
        flood: { requestsPerMinute: 1 },
        requests: { requestsPerMinute: 50 },
        both: { requestsPerMinute: 50, tokensPerMinute: 90_000 },
      })),
  )

  describe('A limit of requests', () => {
    it('is not touched by reads, and questions about limits are free', async () => {
      for (let count = 0; count < 3; count++) {
        const answer = await lab.get('reads', '/v1/models')
        expect([answer.status, answer.headers.get('x-ratelimit-remaining-requests')]).toEqual([200, '1'])
      }
      await lab.limits('reads')
      expect((await lab.chat('reads')).status).toBe(200)
      expect((await lab.chat('reads')).status).toBe(429)
      expect((await lab.get('reads', '/v1/models')).status).toBe(200)
      expect((await lab.limits('reads')).limits['requestsPerMinute']).toMatchObject({ limit: 1, remaining: 0 })
    })
  })

  describe('A flood of refusals', () => {
    const CLIENTS = 10
    const EACH = 100

    /** What is counted of refusals, by kind and by the answers of routes. */
    async function counted(kind: string, status: number): Promise<readonly number[]> {
      const text = await lab.gateway.application.get(Metrics).registry.metrics()
      const sum = (line: RegExp): number =>
        [...text.matchAll(line)].reduce((total, [, value]) => total + Number(value), 0)
      return [
        sum(new RegExp(`^gateway_failures_total\\{kind="${kind}"\\} (\\d+)$`, 'gm')),
        sum(new RegExp(`^gateway_requests_total\\{.*status="${status}".*\\} (\\d+)$`, 'gm')),
      ]
    }

    it.each([
      ['by a limit that is used up', 'rate_limited', 429, 'flood', CHAT_PATH],
      ['by such a limit, of messages', 'rate_limited', 429, 'flood', MESSAGES],
      ['without a valid key', 'unauthorized', 401, 'no-key-of-ours', CHAT_PATH],
      ['without a valid key, of messages', 'unauthorized', 401, 'no-key-of-ours', MESSAGES],
    ])('%s is answered whole, each like the first, and counted to the last', async (_why, kind, status, key, path) => {
      if (status === 429) await lab.chat(key)
      const body = path === MESSAGES ? messageText('x') : chatText('x')
      const before = await counted(kind, status)
      const ended = { alone: 0, together: 0 }
      const hooks = lab.gateway.application.get(RequestHooks)
      hooks.onFinished(() => ended.alone++)
      hooks.onRepeated((_call, _outcome, times) => (ended.together += times))
      const clients = Array.from({ length: CLIENTS }, () => new KeptAliveClient(lab.gateway.url))
      const answers = await Promise.all(
        clients.map(async (client, index) => {
          const own = []
          for (let count = 0; count < EACH; count++) own.push(await client.ask(requestBytes(path, key, index, body)))
          client.socket.destroy()
          return own
        }),
      )
      const shown = new Set(answers.flatMap((own, index) => own.map((answer) => shownOf(answer, index))))
      expect([...shown]).toHaveLength(1)
      expect(new Set(answers.flat().map((answer) => answer.status))).toEqual(new Set([status]))
      const expected = before.map((count) => count + CLIENTS * EACH)
      await eventually(async () => (await counted(kind, status)).join() === expected.join())
      expect(ended.alone + ended.together).toBe(CLIENTS * EACH)
      expect(ended.together).toBeGreaterThan(0)
    })

    const requestBytes = (path: string, key: string, index: number, body: string): string =>
      `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nx-request-id: client-${index}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

    /** An answer without what time and request change of it. */
    const shownOf = ({ head, body }: { readonly head: string; readonly body: string }, index: number): string =>
      [
        ...head
          .toLowerCase()
          .split('\r\n')
          .filter((line) => !/^(?:date|connection|keep-alive|content-length):|reset/.test(line))
          .sort(),
        body,
      ]
        .join('\n')
        .replaceAll(`client-${index}`, 'client')
        .replaceAll(/\d+ s\b|retry-after: \d+/g, 'later')
  })

  describe('A limit of requests at once', () => {
    it('is free again whatever becomes of the call that filled it', async () => {
      const inUse = async (): Promise<number | undefined> =>
        (await lab.limits('one-at-once')).limits['concurrency']?.in_use
      const controller = new AbortController()
      const hanging = lab.chat('one-at-once', '#hang', {}, controller.signal).catch(() => 'aborted')
      await eventually(async () => (await inUse()) === 1, inUse)
      const refused = await lab.chat('one-at-once')
      expect(refused.status).toBe(429)
      expect(refused.headers.get('retry-after')).toBe('1')
      expect(refused.headers.get('x-gateway-limit')).toBe('concurrency; scope=key:one-at-once; reset=1')
      expect(await refused.json()).toMatchObject({ error: { code: 'concurrency_limit_exceeded' } })
      const read = await lab.get('one-at-once', '/imggen/task/1/fetch')
      expect([read.status, await read.json()]).toMatchObject([429, { code: 1303 }])
      controller.abort()
      expect(await hanging).toBe('aborted')
      await eventually(async () => (await inUse()) === 0, inUse)
      for (const text of ['Hello', '#500', '#cut', '#reset', 'Hello']) {
        const answer = await lab.chat('one-at-once', text)
        expect(answer.status).not.toBe(429)
        await answer.text().catch(() => 'cut')
        await eventually(async () => (await inUse()) === 0, inUse)
      }
      expect((await lab.post('one-at-once', '/v1/chat/completions', '{')).status).toBe(400)
      await eventually(async () => (await inUse()) === 0, inUse)
    })
  })

  describe('A key without limits', () => {
    it('hears of none but those of the upstream', async () => {
      const answer = await lab.chat('free')
      expect([answer.status, answer.headers.get('x-gateway-limit')]).toEqual([200, null])
      const told = ['limit', 'remaining', 'reset'].map((what) => answer.headers.get(`x-ratelimit-${what}-requests`))
      expect(told).toEqual(['10000', '9999', '6ms'])
      expect(await lab.limits('free')).toEqual({ object: 'limits', scope: 'key:free', shared: false, limits: {} })
    })
  })

  const RECORDING = multipartBytes([filePart('no audio')])

  const WORK: readonly (readonly [path: string, request: Omit<RawRequest, 'path'>, dialect: RefusalBody])[] = [
    [CHAT_PATH, { body: chatText('Hi') }, inChat],
    [SPEECH_PATH, { body: speechText('Hi') }, inChat],
    [TRANSCRIPTIONS, { body: RECORDING, headers: MULTIPART }, inChat],
    [TRANSLATIONS, { body: RECORDING, headers: MULTIPART }, inChat],
    [MESSAGES, { body: messageText('Hi') }, inMessages],
    [COUNT_TOKENS, { body: messageText('Hi') }, inMessages],
    [DOCUMENTS, { body: '{}' }, inTasks],
    [VIDEOS, { body: '{}' }, inTasks],
  ]

  describe('A caller who has no requests left', () => {
    it.each(WORK)(
      'reads why, whose limit it is and when it is reset in the words of %s',
      async (path, request, body) => {
        await (await lab.chat('spent')).text()
        const answer = await askAs('spent', lab.gateway, { path, ...request })
        const seconds = answer.headers['retry-after'] ?? ''
        expect(Number(seconds)).toBeGreaterThan(30)
        expect(Number(seconds)).toBeLessThanOrEqual(60)
        const limit = 'The limit of 1 requests per minute of this API key (key:spent)'
        const text = `${limit} is used up. It is reset in ${seconds} s.`
        expect(answer.status).toBe(429)
        expect(JSON.parse(answer.text)).toEqual(body({ message: text, ...BY_MINUTE }))
        expect(answer.headers['content-type']).toBe('application/json')
        expect(limitHeaders(answer)).toEqual({
          'retry-after': seconds,
          'x-gateway-limit': `requestsPerMinute; scope=key:spent; reset=${seconds}`,
          ...shownLimit(path, 'requests', 1, 0),
        })
      },
    )
  })

  describe('A caller who has as many requests under way as it may', () => {
    const READS: typeof WORK = [
      ['/imggen/task/1/fetch', { method: 'GET' }, inImages],
      ['/imggen/task/1/image-seed', { method: 'GET' }, inImages],
      [`${VIDEOS}/1`, { method: 'GET' }, inTasks],
    ]
    const controller = new AbortController()
    let hanging: Promise<unknown>

    beforeAll(async () => {
      hanging = lab.chat('full', '#hang', {}, controller.signal).catch(() => 'aborted')
      await eventually(async () => (await lab.limits('full')).limits['concurrency']?.in_use === 1)
    })
    afterAll(() => {
      controller.abort()
      return hanging
    })

    it.each([...WORK, ...READS])(
      'reads so in the words of %s, and has used no request',
      async (path, request, body) => {
        const answer = await askAs('full', lab.gateway, { path, ...request })
        const text =
          'The limit of 1 requests at once of this API key (key:full) is reached. Try again once one of them has ended.'
        expect(answer.status).toBe(429)
        expect(JSON.parse(answer.text)).toEqual(
          body({ message: text, code: 'concurrency_limit_exceeded', taskCode: 1303 }),
        )
        expect(limitHeaders(answer)).toEqual({
          'retry-after': '1',
          'x-gateway-limit': 'concurrency; scope=key:full; reset=1',
          ...shownLimit(path, 'requests', 50, 49),
        })
      },
    )
  })

  describe('A task route', () => {
    it('tells what is left with whatever it answers', async () => {
      for (const [path, left] of [
        [VIDEOS, 2],
        [DOCUMENTS, 1],
      ] as const) {
        const answer = await askAs('task', lab.gateway, { path, body: '{}' })
        expect(answer.status).toBe(400)
        expect(answer.headers).toMatchObject(shownLimit(path, 'requests', 3, left))
      }
    })
  })

  describe('A limit of tokens', () => {
    const remaining = async (key: string): Promise<number> =>
      (await lab.limits(key)).limits['tokensPerMinute']?.remaining ?? NaN

    it('is reserved by what a request may use and settled by what it has used', async () => {
      const answer = await lab.chat('tokens', 'Hello', { max_tokens: 900 })
      expect(Number(answer.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThanOrEqual(100)
      const { usage } = (await answer.json()) as { usage: { total_tokens: number } }
      await eventually(async () => (await remaining('tokens')) === 1000 - usage.total_tokens)
      const controller = new AbortController()
      const hanging = lab.chat('tokens', '#hang', { max_tokens: 900 }, controller.signal).catch(() => 'aborted')
      await eventually(async () => (await remaining('tokens')) < 100)
      const refused = await lab.chat('tokens', 'Hello', { max_tokens: 900 })
      expect(refused.status).toBe(429)
      expect(await refused.json()).toMatchObject({
        error: { code: 'rate_limit_exceeded', message: expect.stringContaining('and this request expects to use') },
      })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1)
      const reserved = await remaining('tokens')
      controller.abort()
      expect(await hanging).toBe('aborted')
      // The upstream was at work: what it has used is not known, and stays reserved until the window ends.
      await eventually(() => /"keyId":"tokens".*"status":499/.test(lab.gateway.logText()))
      expect(await remaining('tokens')).toBe(reserved)
    })

    it.each(['#500', '#reset', '#malformed', '#400', '#429', '#html'])(
      'is given back when the upstream fails: %s',
      async (text) => {
        await (await lab.chat('failing', text, { max_tokens: 900 })).text()
        await eventually(async () => (await remaining('failing')) === 1000)
      },
    )

    it('is distinguished from one that can never be served, which must not be retried', async () => {
      const answer = await lab.chat('never', 'Hello', { max_tokens: 101 })
      expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([
        429,
        'false',
        null,
      ])
      expect(await answer.json()).toMatchObject({
        error: { code: 'request_exceeds_limit', message: expect.stringContaining('it can never be served') },
      })
      expect(answer.headers.get('x-gateway-limit')).toBe('tokensPerMinute; scope=key:never')
    })

    it('has room for as many answers without a maximum at once as may be long', async () => {
      const controller = new AbortController()
      let refusals = 0
      const asked = Array.from({ length: 20 }, async () => {
        const answer = await lab.chat('parallel', '#hang', {}, controller.signal).catch(() => undefined)
        if (answer?.status === 429) refusals++
        return answer?.status
      })
      // A thousand tokens for each answer, and some for its prompt: four fit.
      await eventually(() => refusals === 16).finally(() => {
        controller.abort()
      })
      expect((await Promise.all(asked)).filter((status) => status === undefined)).toHaveLength(4)
    })

    it('charges the reported usage of a stream', async () => {
      const answer = await lab.chat('streaming', 'Hello #chunks=20', {
        stream: true,
        stream_options: { include_usage: true },
      })
      const total = /"total_tokens": ?(\d+)/.exec(await answer.text())?.[1]
      expect(Number(total)).toBeGreaterThan(20)
      await eventually(async () => (await remaining('streaming')) === 100_000 - Number(total))
    })
  })

  describe('A limit of audio', () => {
    it('is used by the length of what is to be spoken', async () => {
      const answer = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(90)))
      expect([answer.status, answer.headers.get('x-ratelimit-remaining-audio-seconds')]).toEqual([200, '4'])
      await answer.arrayBuffer()
      const refused = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(90)))
      expect([refused.status, refused.headers.get('x-ratelimit-limit-audio-seconds')]).toEqual([429, '10'])
      const never = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(200)))
      expect([never.status, never.headers.get('x-should-retry')]).toEqual([429, 'false'])
      expect((await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(50)))).status).toBe(200)
    })

    it('is settled by the length of what was spoken, where the audio tells it', async () => {
      const body = speechText('a'.repeat(600), { response_format: 'wav' })
      const answer = await lab.post('spoken', SPEECH_PATH, body)
      expect([answer.status, answer.headers.get('x-ratelimit-remaining-audio-seconds')]).toEqual([200, '60'])
      const seconds = ((await answer.arrayBuffer()).byteLength - WAV_HEADER_BYTES) / WAV_BYTES_PER_SECOND
      expect(Math.abs(seconds - 40)).toBeGreaterThan(2)
      await eventually(async () => {
        const { limits } = await lab.limits('spoken')
        return limits['audioSecondsPerMinute']?.remaining === Math.floor(100 - seconds)
      })
    })

    it('is used by the length of what was heard, and tokens by what the model made of it', async () => {
      const [, make] = OPENAI_CLIENTS[0] as (typeof OPENAI_CLIENTS)[number]
      const client = make(lab.gateway, { apiKey: 'transcription' })
      const file = await toFile(sample('tone.wav'), 'tone.wav')
      const { data, response } = await client.audio.transcriptions
        .create({ model: 'gpt-4o-mini-transcribe', file })
        .withResponse()
      const { usage } = data as { usage?: { total_tokens: number } }
      const left = Number(response.headers.get('x-ratelimit-remaining-audio-seconds'))
      expect(left).toBeLessThan(3)
      await eventually(async () => {
        const { limits } = await lab.limits('transcription')
        return limits['tokensPerMinute']?.remaining === 1000 - (usage?.total_tokens ?? NaN)
      })
      expect((await lab.limits('transcription')).limits['audioSecondsPerMinute']?.remaining).toBe(left)
    })

    it('makes no recording impossible by a guess of its length, but one that tells that it is too long', async () => {
      const send = (file: Buffer, name: string, model: string): Promise<RawAnswer> => {
        const headers = { authorization: 'Bearer guessed' }
        return sendRaw(lab.gateway.url, upload([filePart(file, name), fieldPart('model', model)], undefined, headers))
      }
      // Taken for a second and a half, and for 26 tokens: half as much again as a minute allows.
      const untold = Buffer.concat(Array.from({ length: 4 }, () => sample('tone.mpeg')))
      const body = '{"text":"Hi"}'
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
      const served = await send(untold, 'a.mpeg', 'gpt-4o-mini-transcribe')
      expect([served.status, served.text]).toEqual([200, body])
      expect(served.headers).toMatchObject({
        'x-ratelimit-remaining-audio-seconds': '0',
        'x-ratelimit-remaining-tokens': '0',
      })
      // Its usage is unknown: another request waits for the next minute, which has room for it.
      const waiting = await send(untold, 'a.mpeg', 'whisper-1')
      expect([waiting.status, JSON.parse(waiting.text)]).toMatchObject([
        429,
        { error: { code: 'rate_limit_exceeded' } },
      ])
      expect(Number(waiting.headers['retry-after'])).toBeGreaterThan(30)
      expect(waiting.headers).not.toHaveProperty('x-should-retry')
      const never = await send(wavOfSeconds(2), 'a.wav', 'whisper-1')
      expect([never.status, JSON.parse(never.text)]).toMatchObject([429, { error: { code: 'request_exceeds_limit' } }])
      expect(never.headers['x-should-retry']).toBe('false')
    })
  })

  describe.each(OPENAI_CLIENTS.map(([name, make], index) => [name, make, `openai-${index}`] as const))(
    'A caller with %s that has no requests left',
    (_name, make, apiKey) => {
      it('gets its error with the limit, and what is left with each answer', async () => {
        const client = make(lab.gateway, { apiKey })
        const { response } = await client.chat.completions.create(chat('Hi')).withResponse()
        expect(response.headers.get('x-ratelimit-limit-requests')).toBe('2')
        expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('1')
        expect(response.headers.get('x-ratelimit-reset-requests')).toMatch(/^(?:1m0s|5\ds)$/)
        await client.chat.completions.create(chat('Hi'))
        const error = (await client.chat.completions.create(chat('Hi')).catch((reason: unknown) => reason)) as {
          readonly status: number
          readonly code: string
          readonly type: string
          readonly message: string
          readonly constructor: { readonly name: string }
          readonly headers: Headers | Record<string, string>
        }
        expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' })
        expect(error.constructor.name).toBe('RateLimitError')
        expect(error.message).toMatch(
          new RegExp(
            `The limit of 2 requests per minute of this API key \\(key:${apiKey}\\) is used up. It is reset in \\d+ s.`,
          ),
        )
        const headers = new Headers(error.headers)
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(30)
        expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
        expect(headers.get('x-gateway-limit')).toBe(
          `requestsPerMinute; scope=key:${apiKey}; reset=${headers.get('retry-after')}`,
        )
        expect(headers.get('x-ratelimit-remaining-requests')).toBe('0')
        expect(headers.get('x-should-retry')).toBeNull()
      })
    },
  )

  describe.each(ANTHROPIC_CLIENTS.map(([name, make], index) => [name, make, `anthropic-${index}`] as const))(
    'A caller with %s that has no requests left',
    (_name, make, apiKey) => {
      it("gets its family's error and headers", async () => {
        const client = make(lab.gateway, { apiKey })
        const { response } = await client.messages.create(message('Hi')).withResponse()
        expect(response.headers.get('anthropic-ratelimit-requests-limit')).toBe('2')
        expect(response.headers.get('anthropic-ratelimit-requests-remaining')).toBe('1')
        expect(Date.parse(response.headers.get('anthropic-ratelimit-requests-reset') ?? '')).toBeGreaterThan(Date.now())
        expect(response.headers.get('anthropic-ratelimit-tokens-limit')).toBe('5000')
        // While it is under way: what it may use at most.
        expect(Number(response.headers.get('anthropic-ratelimit-tokens-remaining'))).toBeLessThanOrEqual(4800)
        expect(response.headers.get('x-ratelimit-limit-requests')).toBeNull()
        await client.messages.create(message('Hi'))
        const error: unknown = await client.messages.create(message('Hi')).catch((reason: unknown) => reason)
        expect(error).toMatchObject({ status: 429, error: { type: 'error', error: { type: 'rate_limit_error' } } })
        expect((error as Error).constructor.name).toBe('RateLimitError')
        const { headers } = error as { headers: Headers }
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(30)
        expect(headers.get('anthropic-ratelimit-requests-remaining')).toBe('0')
        expect(headers.get('x-gateway-limit')).toMatch(/^requestsPerMinute; scope=key:anthropic-\d; reset=\d+$/)
      })
    },
  )

  const JSON_BODY = { 'content-type': 'application/json' }

  describe('A refusal', () => {
    const inAudio = { error: { code: 'rate_limit_exceeded', type: 'rate_limit_error' } }
    const inMessages = { type: 'error', error: { type: 'rate_limit_error' } }

    it.each([
      [CHAT_PATH, chatText('Hi'), JSON_BODY, inAudio],
      [SPEECH_PATH, speechText('Hi'), JSON_BODY, inAudio],
      [TRANSCRIPTIONS, multipartBytes([filePart('no audio')]), MULTIPART, inAudio],
      [TRANSLATIONS, multipartBytes([filePart('no audio')]), MULTIPART, inAudio],
      [MESSAGES, messageText('Hi'), JSON_BODY, inMessages],
      [COUNT_TOKENS, messageText('Hi'), JSON_BODY, inMessages],
      [DOCUMENTS, '{}', JSON_BODY, { code: 1302 }],
      [VIDEOS, '{}', JSON_BODY, { code: 1302 }],
      ['/vidgen/v1/videos/multi-image2video', '{}', JSON_BODY, { code: 1302 }],
    ])('is in the dialect of %s', async (path, body, type, expected) => {
      await lab.chat('families')
      const headers = { authorization: 'Bearer families', ...type }
      const answer = await sendRaw(lab.gateway.url, { path, headers, body })
      expect(answer.status).toBe(429)
      expect(JSON.parse(answer.text)).toMatchObject(expected)
      expect(answer.headers['retry-after']).toMatch(/^[1-9]\d?$/)
      expect(answer.headers['x-gateway-limit']).toMatch(/^requestsPerMinute; scope=key:families; reset=[1-9]\d?$/)
    })

    it.each([
      [CHAT_PATH, JSON_BODY],
      [MESSAGES, JSON_BODY],
      [TRANSCRIPTIONS, MULTIPART],
      [DOCUMENTS, MULTIPART],
    ])('costs the caller no byte of a body: %s is refused before one is sent', async (path, type) => {
      await lab.chat('families')
      const headers = { authorization: 'Bearer families', ...type }
      const { answer, socket } = await openUpload(lab.gateway.url, 1_000_000, headers, path)
      await eventually(() => answer().startsWith('HTTP/1.1 429 '))
      socket.destroy()
    })
  })

  describe('A caller of messages who has too few tokens left', () => {
    const body = messageText('Hi', { max_tokens: 900 })
    const controller = new AbortController()
    let hanging: Promise<unknown>

    beforeAll(async () => {
      const reserving = messageText('#hang', { max_tokens: 900 })
      hanging = lab.post('held', MESSAGES, reserving, controller.signal).catch(() => 'aborted')
      await eventually(async () => ((await lab.limits('held')).limits['tokensPerMinute']?.remaining ?? NaN) < 100)
    })
    afterAll(() => {
      controller.abort()
      return hanging
    })

    it('reads how many they are, how many the request may use, and when to come back', async () => {
      const answer = await askAs('held', lab.gateway, { path: MESSAGES, body })
      const seconds = answer.headers['retry-after'] ?? ''
      const left = String(answer.headers['anthropic-ratelimit-tokens-remaining'])
      expect(Number(left)).toBeGreaterThan(0)
      expect(Number(seconds)).toBeGreaterThan(30)
      const text =
        `The limit of 1000 tokens per minute of this API key (key:held) has ${left} left, and this request expects ` +
        `to use ${Math.ceil(body.length / 4) + 900}. It is reset in ${seconds} s.`
      expect(answer.status).toBe(429)
      expect(JSON.parse(answer.text)).toEqual(inMessages({ message: text, ...BY_MINUTE }))
      expect(answer.headers['request-id']).toBe(REQUEST_ID)
      expect(limitHeaders(answer)).toEqual({
        'retry-after': seconds,
        'x-gateway-limit': `tokensPerMinute; scope=key:held; reset=${seconds}`,
        ...shownLimit(MESSAGES, 'tokens', 1000, left),
      })
    })

    it.each(ANTHROPIC_CLIENTS)('gets the error of its client: %s', async (_name, make) => {
      const error: unknown = await make(lab.gateway, { apiKey: 'held' })
        .messages.create(message('Hi', { max_tokens: 900 }))
        .catch((reason: unknown) => reason)
      expect(error).toMatchObject({ status: 429, error: { type: 'error', error: { type: 'rate_limit_error' } } })
      expect((error as Error).constructor.name).toBe('RateLimitError')
    })
  })

  describe('A request that is larger than its limit', () => {
    const neverText = (tokens: number): string =>
      `The limit of 100 tokens per minute of this API key (key:never) is less than the ${tokens} that this request ` +
      'expects to use: it can never be served. Ask for less at once.'

    it.each([
      [CHAT_PATH, chatText('Hi', { max_tokens: 101 }), inChat],
      [MESSAGES, messageText('Hi', { max_tokens: 101 }), inMessages],
    ])('gets x-should-retry false, and no Retry-After, at %s', async (path, body, dialect) => {
      const answer = await askAs('never', lab.gateway, { path, body })
      const text = neverText(Math.ceil(body.length / 4) + 101)
      const words = { ...BY_MINUTE, message: text, code: 'request_exceeds_limit' }
      expect(answer.status).toBe(429)
      expect(JSON.parse(answer.text)).toEqual(dialect(words))
      expect(limitHeaders(answer)).toEqual({
        'x-should-retry': 'false',
        'x-gateway-limit': 'tokensPerMinute; scope=key:never',
        ...shownLimit(path, 'tokens', 100, 100),
      })
    })

    async function refusals(): Promise<number> {
      const text = await lab.gateway.application.get(Metrics).registry.metrics()
      return Number(/gateway_limit_refusals_total\{limit="tokensPerMinute"\} (\d+)/.exec(text)?.[1])
    }

    it.each([
      ...OPENAI_CLIENTS.map(([name, make]) => {
        const send = (): Promise<unknown> =>
          make(lab.gateway, { apiKey: 'never', maxRetries: 3 }).chat.completions.create(chat('Hi', { max_tokens: 101 }))
        return [name, send] as const
      }),
      ...ANTHROPIC_CLIENTS.map(([name, make]) => {
        const send = (): Promise<unknown> =>
          make(lab.gateway, { apiKey: 'never', maxRetries: 3 }).messages.create(message('Hi', { max_tokens: 101 }))
        return [name, send] as const
      }),
    ])('is sent once by a client that would try three times again: %s', async (_name, send) => {
      const before = await refusals()
      const error = await send().catch((reason: unknown) => reason as Error)
      expect((error as Error).constructor.name).toBe('RateLimitError')
      expect(await refusals()).toBe(before + 1)
    })
  })

  /** Every limit header of a response, the gateway's and the upstream's. */
  const told = (headers: Headers): string[] =>
    [...headers.keys()].filter((name) => /ratelimit|priority/.test(name)).sort()

  const common = (...words: string[]): string[] =>
    words.flatMap((word) => ['limit', 'remaining', 'reset'].map((part) => `x-ratelimit-${part}-${word}`)).sort()

  const ofMessages = (...words: string[]): string[] =>
    words.flatMap((word) => ['limit', 'remaining', 'reset'].map((part) => `anthropic-ratelimit-${word}-${part}`)).sort()

  describe('A caller with limits, of whose account the upstream tells figures too,', () => {
    it.each([
      ['in a chat', 'Hello', {}],
      ['in a chat that is streamed', 'Hello', { stream: true }],
      ['in a chat that the upstream refuses', '#400', {}],
    ])('gets the headers of its own limits only %s', async (_name, text, more) => {
      const answer = await lab.chat('requests', text, more)
      await answer.text()
      expect(told(answer.headers)).toEqual(common('requests'))
      expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('50')
    })

    it('gets the headers of its own limits only in speech and in a transcription', async () => {
      const spoken = await lab.post('requests', SPEECH_PATH, speechText('Hi'))
      await spoken.arrayBuffer()
      expect([spoken.status, told(spoken.headers)]).toEqual([200, common('requests')])
      const parts = [filePart(sample('tone.wav')), fieldPart('model', 'gpt-4o-transcribe')]
      const headers = { authorization: 'Bearer requests' }
      const heard = await sendRaw(lab.gateway.url, upload(parts, undefined, headers))
      const names = Object.keys(heard.headers).filter((name) => name.includes('ratelimit'))
      expect([heard.status, names.sort()]).toEqual([200, common('requests')])
    })

    it('gets no headers by the minute without a limit by the minute', async () => {
      const chat = await lab.chat('five-at-once')
      await chat.text()
      const messages = await lab.post('five-at-once', MESSAGES, messageText('Hi'))
      await messages.text()
      expect([chat.status, told(chat.headers)]).toEqual([200, []])
      expect([messages.status, told(messages.headers)]).toEqual([200, []])
    })

    it('gets the headers of its own limits only on a stream of messages', async () => {
      const answer = await lab.post('requests', MESSAGES, messageText('Hi', { stream: true }))
      expect(await answer.text()).toContain('message_stop')
      expect(told(answer.headers)).toEqual(ofMessages('requests'))
    })

    it.each(ANTHROPIC_CLIENTS)(
      'gets the headers of its own limits only with %s, and none of input or output tokens',
      async (_name, make) => {
        const client = make(lab.gateway, { apiKey: 'both' })
        const created = await client.messages.create(message('Hi')).withResponse()
        expect(told(created.response.headers)).toEqual(ofMessages('requests', 'tokens'))
        expect(created.response.headers.get('anthropic-ratelimit-requests-limit')).toBe('50')
        expect(created.response.headers.get('anthropic-ratelimit-tokens-limit')).toBe('90000')
        const { model, messages } = message('Hi')
        const counted = await client.messages.countTokens({ model, messages }).withResponse()
        expect(told(counted.response.headers)).toEqual(ofMessages('requests', 'tokens'))
      },
    )
  })

  describe('A caller without limits', () => {
    it.each(['free', 'none'])('hears what the upstream tells, as it tells it: %s', async (key) => {
      const chat = await lab.chat(key)
      await chat.text()
      expect(told(chat.headers)).toEqual(common('requests', 'tokens'))
      expect(chat.headers.get('x-ratelimit-limit-tokens')).toBe('600000')
      const messages = await lab.post(key, MESSAGES, messageText('Hi'))
      await messages.text()
      expect(told(messages.headers)).toEqual(ofMessages('input-tokens', 'output-tokens', 'requests', 'tokens'))
      expect(messages.headers.get('anthropic-ratelimit-input-tokens-limit')).toBe('400000')
    })
  })
})

describe('limits state', () => {
  const opened = closeAfterEach()

  describe('GET /v1/limits', () => {
    it('shows each limit of the key, what is left of it and when it is whole again', async () => {
      const minute = { requestsPerMinute: 10, tokensPerMinute: 5000, audioSecondsPerMinute: 60 }
      const team = { ...minute, concurrency: 3, realtimeSessions: 2 }
      const lab = opened(await startLimitedGateway({ team }))
      const fresh = { remaining: 10, reset_seconds: 0 }
      expect((await lab.limits('team')).limits['requestsPerMinute']).toEqual({ limit: 10, ...fresh })
      const controller = new AbortController()
      const hanging = lab.chat('team', '#hang', { max_tokens: 100 }, controller.signal).catch(() => 'aborted')
      await eventually(async () => (await lab.limits('team')).limits['tokensPerMinute']?.remaining !== 5000)
      const answer = await lab.limits('team')
      expect(answer).toMatchObject({ object: 'limits', scope: 'key:team', shared: false })
      expect(answer.limits).toEqual({
        requestsPerMinute: { limit: 10, remaining: 9, reset_seconds: expect.any(Number) },
        tokensPerMinute: { limit: 5000, remaining: expect.any(Number), reset_seconds: expect.any(Number) },
        audioSecondsPerMinute: { limit: 60, remaining: 60, reset_seconds: 0 },
        concurrency: { limit: 3, remaining: 2, in_use: 1 },
        realtimeSessions: { limit: 2, remaining: 2, in_use: 0 },
      })
      expect(answer.limits['requestsPerMinute']?.reset_seconds).toBeGreaterThan(50)
      expect(answer.limits['tokensPerMinute']?.remaining).toBeLessThan(4900)
      controller.abort()
      await hanging
    })

    it('is for known callers alone', async () => {
      const lab = opened(await startLimitedGateway({ team: {} }))
      const answer = await lab.get('unknown', '/v1/limits')
      expect([answer.status, await answer.json()]).toMatchObject([401, { error: { code: 'invalid_api_key' } }])
    })
  })

  /** A gateway whose `auth` section is this one, in front of an upstream that takes any key. */
  async function startWith(auth: object, credentials = 'upstream'): Promise<TestGateway> {
    const { url: baseUrl } = opened(await startP1Simulator({}))
    const channels = [{ id: 'p1', provider: 'p1', baseUrl, credentials }]
    return opened(await startGateway({ channels, sections: { auth } }))
  }

  const chatOf = (url: string, key: string): Promise<Response> =>
    fetch(url + CHAT_PATH, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: chatText('Hi'),
    })

  async function statusesOf(url: string, keys: readonly string[]): Promise<number[]> {
    const statuses: number[] = []
    for (const key of keys) statuses.push((await chatOf(url, key)).status)
    return statuses
  }

  describe('Limits in the configuration', () => {
    it('are the defaults for keys without any of their own, each key by itself', async () => {
      const keys = [
        { id: 'one', key: 'one' },
        { id: 'two', key: 'two' },
        { id: 'own', key: 'own', limits: { concurrency: 5 } },
        { id: 'none', key: 'none', limits: {} },
      ]
      const { url } = await startWith({ keys, defaultLimits: { requestsPerMinute: 1 } })
      expect(await statusesOf(url, ['one', 'one', 'two', 'two'])).toEqual([200, 429, 200, 429])
      expect(await statusesOf(url, ['own', 'own', 'none', 'none'])).toEqual([200, 200, 200, 200])
    })

    it('are the defaults for callers with a bearer of their own, distinguished by a digest', async () => {
      const { url, logText } = await startWith({ keys: [], defaultLimits: { requestsPerMinute: 1 } }, 'caller')
      expect(await statusesOf(url, ['bearer-one', 'bearer-one', 'bearer-two'])).toEqual([200, 429, 200])
      const refused = await chatOf(url, 'bearer-one')
      const scope = `bearer:${hash('sha256', 'bearer-one', 'hex').slice(0, 32)}`
      expect(refused.headers.get('x-gateway-limit')).toMatch(
        new RegExp(`^requestsPerMinute; scope=${scope}; reset=\\d+$`),
      )
      expect(logText() + (await refused.text())).not.toContain('bearer-one')
    })

    it('hold at once when they are changed, and what was counted stays', async () => {
      const { url: baseUrl } = opened(await startP1Simulator({}))
      const channels = [{ id: 'p1', provider: 'p1', baseUrl, credentials: 'upstream' }]
      let requestsPerMinute = 2
      const configuration = (): GatewayConfig => {
        const keys = [{ id: 'team', key: 'team', limits: { requestsPerMinute } }]
        // What is not stored is not left behind, in the folder the tests run in.
        return parseConfig(JSON.stringify({ auth: { keys }, channels, usage: { store: false } }), {})
      }
      const application = opened(
        await createApplication({
          config: configuration(),
          reloadFrom: () => Promise.resolve({ config: configuration(), file: '' }),
          logging: createLogging('silent'),
          sandbox: false,
        }),
      )
      await application.listen(0, '127.0.0.1')
      const { port } = (application.getHttpServer() as Server).address() as AddressInfo
      const url = `http://127.0.0.1:${port}`
      expect(await statusesOf(url, ['team', 'team', 'team'])).toEqual([200, 200, 429])
      requestsPerMinute = 3
      await application.get(ConfigStore).reload()
      expect(await statusesOf(url, ['team', 'team'])).toEqual([200, 429])
      requestsPerMinute = 1
      await application.get(ConfigStore).reload()
      expect(await statusesOf(url, ['team'])).toEqual([429])
    })
  })

  describe('The metrics of limits', () => {
    it('count refusals by the name of the limit, and say that no Redis is missed', async () => {
      const lab = opened(await startLimitedGateway({ team: { requestsPerMinute: 1 } }))
      await lab.chat('team')
      await lab.chat('team')
      await lab.chat('team')
      const text = await lab.gateway.application.get(Metrics).registry.metrics()
      expect(text).toContain('gateway_limit_refusals_total{limit="requestsPerMinute"} 2')
      expect(text).toContain('gateway_limit_refusals_total{limit="concurrency"} 0')
      expect(text).toMatch(/^gateway_redis_away 0$/m)
    })
  })
})
