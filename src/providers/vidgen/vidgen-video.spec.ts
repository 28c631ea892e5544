import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { enveloped, json, TASK } from '../../../test/support/provider-labs.js'
import { GENEROUS_TIMEOUTS, newCall, targetOf, unusedPort } from '../../../test/support/raw-upstream.js'
import { START_MS, startVidgenLab, TASK_ID, type VidgenLab } from '../../../test/support/vidgen-lab.js'
import { signedToken } from './vidgen-token.js'

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

  it.each([1003, 1004])('that is refused with %i is replaced, and the same request is sent once more', async (code) => {
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
  })

  it('that is refused twice is the channel’s fault', async () => {
    const refused = json(401, enveloped('null', 1004, 'token expired: ak_demo'))
    lab.server.answerWith(refused, refused, CREATED)
    const sent = await lab.requestsOf(() =>
      expect(lab.create()).rejects.toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'answered', channelFault: true }, retryable: false },
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

  it('is not told to anybody, nor the keys it is made of', async () => {
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

  it('because nobody listens has made none', async () => {
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
          call.departure.announce()
        })
      })
      await expect(lab.create({ call })).rejects.toMatchObject({ kind: 'caller_left' })
      await left.promise
    }
  })
})

/** `Promise.withResolvers` of newer engines. */
function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
