import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import {
  CREATE_BODY,
  enveloped,
  json,
  START_MS,
  startVidgenLab,
  TASK,
  TASK_ID,
  type VidgenLab,
} from '../../../test/support/provider-labs.js'
import { attemptOf, GENEROUS_TIMEOUTS, newCall, targetOf, unusedPort } from '../../../test/support/raw-upstream.js'
import { signedToken, VidgenTokens } from './vidgen-video.js'

describe('The provider of vidgen videos', () => {
  const CREATED = json(200, enveloped(TASK))
  const tokenAt = (nowMs: number): string => `Bearer ${signedToken('ak_demo', 'sk_demo', nowMs)}`

  let lab: VidgenLab

  beforeAll(async () => {
    lab = await startVidgenLab()
  })
  afterEach(() => {
    lab.reset()
  })
  afterAll(() => lab.close())

  /** `Promise.withResolvers` of newer engines. */
  function withResolvers(): { promise: Promise<void>; resolve: () => void } {
    let resolve = (): void => undefined
    const promise = new Promise<void>((settle) => {
      resolve = settle
    })
    return { promise, resolve }
  }
  const AUTHORIZATION = tokenAt(START_MS)

  describe('The token of a channel', () => {
    it('serves creates and reads until it is renewed', async () => {
      const used = async (atMs: number): Promise<unknown> => {
        lab.clock.ms = START_MS + atMs
        lab.server.answerWith(CREATED)
        const [sent] = await lab.requestsOf(() => (atMs % 2 === 0 ? lab.read() : lab.create()))
        return sent?.headers.authorization
      }
      expect(await used(0)).toBe(tokenAt(START_MS))
      expect(await used(1_439_999)).toBe(tokenAt(START_MS))
      expect(await used(1_440_001)).toBe(tokenAt(START_MS + 1_440_001))
    })

    it.each([1003, 1004])(
      'that is refused with %i is replaced, and the same request is sent once more',
      async (code) => {
        for (const work of [() => lab.create(), () => lab.read()]) {
          lab.clock.ms = START_MS
          lab.reset()
          lab.server.answerWith((response, request) => {
            lab.clock.ms += 10_000
            json(401, enveloped('null', code, 'no'))(response, request)
          }, CREATED)
          const [first, second, ...more] = await lab.requestsOf(async () => {
            expect(await work()).toMatchObject({ id: TASK_ID })
          })
          expect(first?.headers.authorization).toBe(tokenAt(START_MS))
          expect(second?.headers.authorization).toBe(tokenAt(START_MS + 10_000))
          expect([second?.method, second?.path, second?.body]).toEqual([first?.method, first?.path, first?.body])
          expect(more).toEqual([])
        }
      },
    )

    it('that is refused twice is the channel’s fault', async () => {
      const refused = json(401, enveloped('null', 1004, 'token expired: ak_demo'))
      lab.server.answerWith(refused, refused, CREATED)
      const sent = await lab.requestsOf(() =>
        expect(lab.create()).rejects.toMatchObject({
          kind: 'upstream_failed',
          details: { attempt: { phase: 'answered', channelError: true }, retryable: false },
        }),
      )
      expect(sent).toHaveLength(2)
    })

    it.each([
      ['a bearer', { credentials: 'plain-bearer' }, 1004],
      ['another refusal of the key', {}, 1000],
    ])('is not made anew for %s', async (_what, changes, code) => {
      const refused = json(401, enveloped('null', code, 'no'))
      lab.server.answerWith(refused, CREATED)
      const sent = await lab.requestsOf(() =>
        expect(lab.create(changes)).rejects.toMatchObject({ kind: 'upstream_failed' }),
      )
      expect(sent).toHaveLength(1)
    })

    it('is told to no caller, nor the keys it is made of', async () => {
      const token = signedToken('ak_demo', 'sk_demo', START_MS)
      const message = `${token} of ak_demo|sk_demo (ak_demo, sk_demo) at https://api.example.com is wrong`
      lab.server.answerWith(json(400, enveloped('null', 1201, message)))
      const failure = await lab.create().catch((error: unknown) => error)
      expect(failure).toMatchObject({
        kind: 'invalid_request',
        message: '[key] of [key] ([key], [key]) at [address] is wrong',
        details: { cause: 'code 1201: [key] of [key] ([key], [key]) at [address] is wrong' },
      })
    })

    it('of the caller is the caller’s to know about', async () => {
      lab.server.answerWith(json(401, enveloped('null', 1000, 'no')), json(403, enveloped('null', 1103, 'no')))
      const own = { credentials: 'callers|own', callersKey: true }
      await expect(lab.create(own)).rejects.toMatchObject({
        kind: 'unauthorized',
        details: { attempt: { phase: 'answered' } },
      })
      await expect(lab.create(own)).rejects.toMatchObject({ kind: 'forbidden_model' })
    })
  })

  describe('A create whose answer is lost', () => {
    const mayHaveMade = (kind: string) => ({ kind, details: { attempt: { phase: 'sent' }, retryable: false } })

    it('by a cut is one that may have made a task', async () => {
      lab.server.answerWith(
        (response) => {
          response.writeHead(200, { 'content-type': 'application/json', 'content-length': '9999' })
          response.write(enveloped(TASK), () => response.destroy())
        },
        (response) => {
          response.writeHead(401, { 'content-type': 'application/json', 'content-length': '9999' })
          response.write('{"code":1000,', () => response.destroy())
        },
        (response) => response.destroy(),
      )
      for (let count = 0; count < 3; count++)
        await expect(lab.create()).rejects.toMatchObject(mayHaveMade('upstream_failed'))
    })

    it('by silence is one that may have made a task', async () => {
      const target = targetOf(lab.server.port, {
        poolKey: 'impatient',
        timeouts: { ...GENEROUS_TIMEOUTS, firstByteMs: 50, idleMs: 50 },
      })
      lab.server.answerWith(
        () => undefined,
        (response) => response.writeHead(200, { 'content-type': 'application/json' }).write('{"code":0,'),
      )
      await expect(lab.create({ target })).rejects.toMatchObject(mayHaveMade('upstream_timeout'))
      await expect(lab.create({ target })).rejects.toMatchObject(mayHaveMade('upstream_timeout'))
    })

    it('by an answer without end is one that may have made a task, and the answer is not read to its end', async () => {
      const { promise: closed, resolve } = withResolvers()
      lab.server.answerWith((response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const more = (): void => {
          while (response.write(Buffer.alloc(65_536, ' ')));
        }
        response.on('drain', more).once('close', resolve)
        more()
      })
      await expect(lab.create()).rejects.toMatchObject(mayHaveMade('upstream_failed'))
      await closed
    })

    it('because no server listens has made none', async () => {
      const target = targetOf(await unusedPort())
      await expect(lab.create({ target })).rejects.toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'unsent' } },
      })
    })

    it('because the caller has left ends at the upstream at once', async () => {
      for (const begin of [false, true]) {
        const call = newCall()
        const left = withResolvers()
        lab.server.answerWith((response) => {
          if (begin) response.writeHead(200, { 'content-type': 'application/json' }).write('{')
          void once(response, 'close').then(left.resolve)
          setImmediate(() => {
            call.disconnect.abort()
          })
        })
        await expect(lab.create(attemptOf(call))).rejects.toMatchObject({ kind: 'caller_left' })
        await left.promise
      }
    })
  })

  describe('A create', () => {
    it('sends the bytes it was given, under a signed token, and answers with the task', async () => {
      lab.server.answerWith(CREATED)
      const call = newCall()
      const [sent] = await lab.requestsOf(async () => {
        expect(await lab.create(attemptOf(call))).toEqual({
          id: TASK_ID,
          status: 'submitted',
          object: TASK,
          updatedAtMs: 1750000000123,
          message: 'SUCCEED',
        })
      })
      expect(sent).toMatchObject({ method: 'POST', path: '/v1/videos/text2video', body: CREATE_BODY })
      expect(sent?.headers).toEqual({
        host: `127.0.0.1:${lab.server.port}`,
        connection: 'keep-alive',
        authorization: AUTHORIZATION,
        accept: 'application/json',
        'accept-encoding': 'identity',
        'content-type': 'application/json',
        'content-length': String(CREATE_BODY.length),
      })
      expect(call.log).toMatchObject({ upstreamRequestId: 'CjMk-1', upstreamStatus: 200 })
    })

    it.each([
      ['multi-image2video', {}, '', '/v1/videos/multi-image2video'],
      ['text2video', { pathPrefix: '/relay/v1' }, '', '/relay/v1/videos/text2video'],
      ['text2video', { pathPrefix: '' }, '/base', '/base/videos/text2video'],
      ['multi-image2video', { unknownTasks: 'relay' }, '/base', '/base/v1/videos/multi-image2video'],
    ] as const)('of %s with the options %j behind %j goes to %s', async (kind, options, pathPrefix, path) => {
      lab.server.answerWith(CREATED)
      const target = targetOf(lab.server.port, { pathPrefix })
      const [sent] = await lab.requestsOf(() => lab.create({ options, target }, kind))
      expect(sent?.path).toBe(path)
    })

    it('sends a credential without a bar as it is', async () => {
      lab.server.answerWith(CREATED)
      const [sent] = await lab.requestsOf(() => lab.create({ credentials: 'sk-other-relay' }))
      expect(sent?.headers.authorization).toBe('Bearer sk-other-relay')
    })

    it('with a key of the caller’s that has its bar in the wrong place is not sent', async () => {
      const sent = await lab.requestsOf(() =>
        expect(lab.create({ credentials: 'a|b|c', callersKey: true })).rejects.toMatchObject({ kind: 'key_malformed' }),
      )
      expect(sent).toEqual([])
    })

    it.each([
      ['the id missing', '{"task_status":"submitted"}'],
      ['the status missing', '{"task_id":"1"}'],
      ['an unknown status', '{"task_id":"1","task_status":"queued"}'],
      ['no task at all', 'null'],
      ['a list', `[${TASK}]`],
    ])('that is answered with %s may have made a task', async (_what, data) => {
      lab.server.answerWith(json(200, enveloped(data)))
      await expect(lab.create()).rejects.toMatchObject({
        kind: 'upstream_failed',
        message: expect.stringContaining('may have made the task'),
        details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
      })
    })

    it('that made a task is not lost by the HTTP status, or by a code that is missing', async () => {
      lab.server.answerWith(json(500, enveloped(TASK)), json(201, `{"data":${TASK}}`))
      expect((await lab.create()).id).toBe(TASK_ID)
      expect((await lab.create()).id).toBe(TASK_ID)
    })
  })

  describe('A read', () => {
    it('sends no body and answers with the task as the upstream spelled it', async () => {
      const data = `{"task_id":831200000000000001, "task_status":"processing", "final_unit_deduction":2.50}`
      lab.server.answerWith(json(200, enveloped(data)))
      const [sent] = await lab.requestsOf(async () => {
        expect(await lab.read()).toEqual({ id: TASK_ID, status: 'processing', object: data, message: 'SUCCEED' })
      })
      expect(sent).toMatchObject({ method: 'GET', path: `/v1/videos/text2video/${TASK_ID}`, body: Buffer.alloc(0) })
      expect(sent?.headers).toEqual({
        host: `127.0.0.1:${lab.server.port}`,
        connection: 'keep-alive',
        authorization: AUTHORIZATION,
        accept: 'application/json',
        'accept-encoding': 'identity',
      })
    })

    it.each([
      ['a/b?c#d', 'a%2Fb%3Fc%23d'],
      ['0123456789ab.order:7_x-y', '0123456789ab.order%3A7_x-y'],
      ['ü %', '%C3%BC%20%25'],
      ['../text2video', '..%2Ftext2video'],
    ])('of %j stays inside its path', async (id, encoded) => {
      lab.server.answerWith(json(200, enveloped(TASK)))
      const [sent] = await lab.requestsOf(() => lab.read(id))
      expect(sent?.path).toBe(`/v1/videos/text2video/${encoded}`)
    })

    it.each(['', '.', '..'])('of %j, which names another resource, is not sent', async (id) => {
      expect(
        await lab.requestsOf(async () => {
          expect(await lab.read(id)).toBeUndefined()
        }),
      ).toEqual([])
    })

    it.each([
      [404, enveloped('null', 1203, 'task not found')],
      [200, enveloped('null', 1203, 'task not found')],
      [404, '{"error":"nothing here"}'],
    ])('of a task that the upstream does not know (%i) finds nothing', async (status, body) => {
      lab.server.answerWith(json(status, body))
      expect(await lab.read()).toBeUndefined()
    })

    it('of a task whose answer leaves its id out is one of the id that was asked for', async () => {
      lab.server.answerWith(json(200, enveloped('{"task_status":"failed"}')))
      expect(await lab.read('my.external')).toMatchObject({ id: 'my.external', status: 'failed' })
    })

    it.each([
      ['no status', json(200, enveloped('{"task_id":"1"}'))],
      ['no task', json(200, enveloped('null'))],
      ['a page', json(404, '<html>')],
      ['another page', json(502, '<html>')],
    ])('that is answered with %s says nothing about the task, and may be repeated', async (_what, answer) => {
      lab.server.answerWith(answer)
      const failure = await lab.read().catch((error: unknown) => error)
      expect(failure).toMatchObject({ kind: 'upstream_failed', details: { attempt: { phase: 'answered' } } })
      expect(failure).not.toMatchObject({ details: { retryable: false } })
    })
  })
})

const NOW_MS = 1_750_000_000_000
/** The vector of the wire reference. */
const VECTOR =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJha19kZW1vIiwiZXhwIjoxNzUwMDAxODAwLCJuYmYiOjE3NDk5OTk5OTV9.AmU4sggkniBKONqHrKawfRGJ3_oDhICITPfEG2hkSqQ'

const PAIR = { channelId: 'first', credentials: 'ak_demo|sk_demo' }

/** Tokens by a clock that the test moves. */
function tokensAt(startMs = NOW_MS) {
  const clock = { ms: startMs }
  const tokens = new VidgenTokens(() => clock.ms)
  return { clock, tokens, bearer: (context = PAIR) => tokens.authorize(context).bearer }
}

describe('A signed token', () => {
  it('is that of the test vector', () => {
    expect(signedToken('ak_demo', 'sk_demo', NOW_MS)).toBe(VECTOR)
    expect(tokensAt().bearer()).toBe(VECTOR)
  })

  it('counts whole seconds, and signs with the bytes of the key as they are', () => {
    expect(signedToken('ak_demo', 'sk_demo', NOW_MS + 999)).toBe(VECTOR)
    const [head = '', claims = '', signature] = signedToken('a', 'a2V5+/==', NOW_MS).split('.')
    expect(signature).toBe(
      createHmac('sha256', Buffer.from('a2V5+/==')).update(`${head}.${claims}`).digest('base64url'),
    )
    expect(Buffer.from(claims, 'base64url').toString()).toBe('{"iss":"a","exp":1750001800,"nbf":1749999995}')
  })
})

describe('The tokens of a channel', () => {
  it('serve for four fifths of their life, then a new one does', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    clock.ms = NOW_MS + 1_439_999
    expect(bearer()).toBe(VECTOR)
    clock.ms = NOW_MS + 1_440_000
    const renewed = signedToken('ak_demo', 'sk_demo', clock.ms)
    expect(renewed).not.toBe(VECTOR)
    expect(bearer()).toBe(renewed)
    clock.ms += 1_439_999
    expect(bearer()).toBe(renewed)
  })

  it('are made anew when the clock is set back: one of the future would be refused', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    clock.ms = NOW_MS - 60_000
    expect(bearer()).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
  })

  it('are one per channel and credential', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    clock.ms += 10_000
    expect(bearer({ ...PAIR, channelId: 'second' })).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
    expect(bearer({ ...PAIR, credentials: 'ak|sk' })).toBe(signedToken('ak', 'sk', clock.ms))
    expect(bearer()).toBe(VECTOR)
  })

  it('are forgotten when the upstream refuses them, but not when they have been replaced meanwhile', () => {
    const { clock, tokens, bearer } = tokensAt()
    bearer()
    clock.ms += 10_000
    tokens.forget(PAIR, 'an older token')
    expect(bearer()).toBe(VECTOR)
    tokens.forget(PAIR, VECTOR)
    expect(bearer()).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
  })

  it('are kept for a thousand credentials and no more, the oldest going first', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    for (let count = 0; count < 999; count++) bearer({ channelId: 'passing', credentials: `caller${count}|sk` })
    clock.ms += 1000
    expect(bearer()).toBe(VECTOR)
    bearer({ channelId: 'passing', credentials: 'one-more|sk' })
    expect(bearer()).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
  })

  it('are the newest again when they are renewed', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    for (let count = 0; count < 999; count++) bearer({ channelId: 'passing', credentials: `caller${count}|sk` })
    clock.ms += 1_440_000
    const renewed = bearer()
    bearer({ channelId: 'passing', credentials: 'one-more|sk' })
    clock.ms += 1000
    expect(bearer()).toBe(renewed)
  })
})

describe('A credential', () => {
  it('without a bar is a bearer, sent as it is', () => {
    const { tokens } = tokensAt()
    expect(tokens.authorize({ channelId: 'first', credentials: 'sk-relay-key' })).toEqual({
      bearer: 'sk-relay-key',
      isSigned: false,
      secrets: ['sk-relay-key'],
    })
  })

  it('of two parts is signed with, and all of it and of its token is secret', () => {
    const { bearer, isSigned, secrets } = tokensAt().tokens.authorize(PAIR)
    expect(isSigned).toBe(true)
    expect([...secrets].sort()).toEqual(['ak_demo', 'ak_demo|sk_demo', 'sk_demo', bearer].sort())
  })

  it.each(['|', 'ak|', '|sk', 'a|b|c', 'a b|c', 'a|ü'])(
    'with its bar in the wrong place is refused: %s',
    (credentials) => {
      const { tokens } = tokensAt()
      expect(() => tokens.authorize({ channelId: 'passing', credentials })).toThrow(
        expect.objectContaining({ kind: 'key_malformed', details: { attempt: { phase: 'unsent' } } }),
      )
    },
  )

  it('uses the clock of the machine where no other is given', () => {
    const before = Math.floor(Date.now() / 1000)
    const [, claims = ''] = new VidgenTokens().authorize(PAIR).bearer.split('.')
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number }
    expect(exp).toBeGreaterThanOrEqual(before + 1800)
    expect(exp).toBeLessThanOrEqual(Math.floor(Date.now() / 1000) + 1800)
  })
})
