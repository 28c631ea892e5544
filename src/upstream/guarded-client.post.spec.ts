import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { GENEROUS_TIMEOUTS, newCall, type RawUpstream, startRawUpstream } from '../../test/support/raw-upstream.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { GuardedClient, type GuardedPost } from './safe-fetch.js'
import type { ResolveHost } from './ssrf-guard.js'

/** Well below the deadlines that end a request when the one under test does not. */
const SOON_MS = 8000

let receiver: RawUpstream
let heads: string[]
let answer: (socket: Socket) => void
let resolve: ResolveHost
let client: GuardedClient

beforeEach(async () => {
  heads = []
  answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
  receiver = await startRawUpstream((socket, head) => {
    heads.push(head)
    answer(socket)
  })
  const allow = [`127.0.0.1:${receiver.port}`]
  resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  client = new GuardedClient(new ConfigStore(parseConfig(JSON.stringify({ ssrf: { allow } }), {})), (host) =>
    resolve(host),
  )
})
afterEach(async () => {
  await client.onApplicationShutdown()
  await receiver.close()
})

const post = (path = '/', changes: Partial<GuardedPost> = {}) =>
  client.post(`http://127.0.0.1:${receiver.port}${path}`, {
    call: newCall(),
    deadlineAtMs: performance.now() + 20_000,
    timeouts: GENEROUS_TIMEOUTS,
    body: Buffer.from('{"a":"é"}'),
    ...changes,
  })

/** Resets count as closed. */
const allClosed = async (): Promise<void> => {
  for (const socket of receiver.sockets) {
    await new Promise<void>((resolveClosed) => {
      socket.once('close', () => {
        resolveClosed()
      })
    })
  }
}

describe('A body that is posted', () => {
  it('is sent as it stands, with its length and the headers given', async () => {
    const answered = await post('/hook?token=1', { headers: ['content-type', 'application/json', 'x-id', '1'] })
    expect(answered.status).toBe(200)
    const [line, ...headers] = heads[0]?.split('\r\n') ?? []
    expect(line).toBe('POST /hook?token=1 HTTP/1.1')
    expect(headers.sort()).toEqual([
      'connection: close',
      'content-length: 10',
      'content-type: application/json',
      `host: 127.0.0.1:${receiver.port}`,
      'x-id: 1',
    ])
  })

  it.each([301, 302, 303, 307, 308])(
    'is answered with a redirect of status %i, which is not followed',
    async (status) => {
      answer = (socket) => socket.write(`HTTP/1.1 ${status} Moved\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n`)
      expect(await post()).toMatchObject({ status, headers: { location: '/next' } })
      expect(heads).toHaveLength(1)
    },
  )

  it.each([204, 400, 410, 429, 500])('is answered with status %i', async (status) => {
    answer = (socket) => socket.write(`HTTP/1.1 ${status} X\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n`)
    expect(await post()).toMatchObject({ status, headers: { 'retry-after': '7' } })
  })
})

describe('The answer to a post', () => {
  it(
    'counts although its body never stops; no more than 64 KiB of it are read',
    async () => {
      let written = 0
      answer = (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
        const pour = (): void => {
          while (!socket.destroyed && socket.write(`4000\r\n${'x'.repeat(16_384)}\r\n`)) written++
        }
        socket.on('drain', pour)
        pour()
      }
      expect((await post()).status).toBe(200)
      await allClosed()
      // What the sockets' buffers hold is more than is read, but far less than a stream.
      expect(written).toBeLessThan(1000)
    },
    SOON_MS,
  )

  it(
    'counts although its body breaks off, or does not come in time',
    async () => {
      const head = 'HTTP/1.1 202 Accepted\r\ncontent-length: 9\r\n\r\nab'
      answer = (socket) => {
        socket.write(head, () => socket.resetAndDestroy())
      }
      expect((await post()).status).toBe(202)
      answer = (socket) => socket.write(head)
      expect((await post('/', { deadlineAtMs: performance.now() + 200 })).status).toBe(202)
      await allClosed()
    },
    SOON_MS,
  )
})

describe('A post', () => {
  it(
    'fails with its deadline, and leaves no connection behind',
    async () => {
      answer = () => undefined
      await expect(post('/', { deadlineAtMs: performance.now() + 200 })).rejects.toMatchObject({
        kind: 'upstream_timeout',
      })
      await allClosed()
    },
    SOON_MS,
  )

  it('fails when the receiver resets the connection, and is not sent twice', async () => {
    answer = (socket) => socket.resetAndDestroy()
    await expect(post()).rejects.toMatchObject({ kind: 'upstream_failed', details: { attempt: { phase: 'sent' } } })
    expect(heads).toHaveLength(1)
  })

  it(
    'ends at once when its call does',
    async () => {
      const call = newCall()
      answer = () => {
        call.departure.announce()
      }
      await expect(post('/', { call })).rejects.toMatchObject({ kind: 'caller_left' })
      await allClosed()
    },
    SOON_MS,
  )

  it('to an address that is not allowed names the field of whoever sent it', async () => {
    const request = { call: newCall(), deadlineAtMs: performance.now() + 20_000, timeouts: GENEROUS_TIMEOUTS }
    for (const url of ['http://10.0.0.1/', `http://private.test:${receiver.port}/`, 'ftp://8.8.8.8/', 'no url']) {
      const attempt = client.post(url, { ...request, body: Buffer.from('{}'), callersField: 'callback_url' })
      await expect(attempt).rejects.toMatchObject({
        kind: 'invalid_request',
        details: { code: 'url_not_allowed', param: 'callback_url' },
      })
    }
    expect(receiver.accepted).toBe(0)
  })
})

describe('A URL that is judged before it is used', () => {
  const judge = (url: string, resolveMs = 20_000) => client.assertAllowed(url, 'callback_url', resolveMs)
  const refusal = { kind: 'invalid_request', details: { code: 'url_not_allowed', param: 'callback_url' } }

  it('is refused as it would be then', async () => {
    for (const url of ['http://127.0.0.1/', 'http://private.test/', 'http://8.8.8.8:22/', 'ws://8.8.8.8/']) {
      await expect(judge(url)).rejects.toMatchObject(refusal)
    }
    expect(receiver.accepted).toBe(0)
  })

  it('passes when its addresses are public, or the operator exempts it; nobody is called', async () => {
    await judge(`http://127.0.0.1:${receiver.port}/`)
    await judge('https://8.8.8.8/')
    resolve = () => Promise.resolve([{ address: '8.8.8.8', family: 4 }])
    await judge('https://public.test/hook')
    expect(receiver.accepted).toBe(0)
  })

  it('passes when its name is not known now, or not in time', async () => {
    resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    await judge('https://unknown.test/')
    resolve = () => new Promise(() => undefined)
    await judge('https://slow.test/', 10)
  })
})
