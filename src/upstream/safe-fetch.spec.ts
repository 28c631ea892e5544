import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Test } from '@nestjs/testing'
import fc from 'fast-check'
import { parseConfig } from '../../test/support/config.js'
import { GuardedLab, redirectTo, refused, SOON_MS, textOf } from '../../test/support/outbound-labs.js'
import {
  attemptOf,
  GENEROUS_TIMEOUTS,
  newCall,
  type RawUpstream,
  startRawUpstream,
  startUntouchedServer,
  type UntouchedServer,
} from '../../test/support/raw-upstream.js'
import { ConfigStore } from '../config/config-store.js'
import { boundedLookups, SafeFetchClient, type SafeFetchPost } from './safe-fetch.js'
import { AddressRefused, type ResolveHost, TooManyRedirects } from './ssrf-guard.js'
import { HttpModule } from './upstream.module.js'

const ADDRESSES = [{ address: '93.184.216.34', family: 4 }]

describe('Lookups of names', () => {
  it('are so many at once and no more, also when no caller waits for them, and go on once one has ended', async () => {
    const ends: (() => void)[] = []
    const hanging: ResolveHost = async () => {
      await new Promise<void>((end) => ends.push(end))
      return ADDRESSES
    }
    const resolve = boundedLookups(hanging, 2)
    const running = [resolve('a.test'), resolve('b.test')]
    await expect(resolve('c.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
    expect(ends).toHaveLength(2)
    ends[0]?.()
    expect(await running[0]).toEqual(ADDRESSES)
    const next = resolve('c.test')
    expect(ends).toHaveLength(3)
    for (const end of ends) end()
    expect(await Promise.all([...running, next])).toEqual([ADDRESSES, ADDRESSES, ADDRESSES])
  })

  it('fail as the name server says, and make room', async () => {
    const failure = new Error('ENOTFOUND')
    const resolve = boundedLookups(() => Promise.reject(failure), 1)
    for (let asked = 0; asked < 3; asked++) await expect(resolve('a.test')).rejects.toBe(failure)
  })
})

describe('A guarded client', () => {
  let lab: GuardedLab
  beforeEach(async () => {
    lab = await GuardedLab.start()
  })
  afterEach(async () => {
    await lab.close()
  })

  describe('A fetch', () => {
    const silent = (socket: Socket): void => {
      lab.heads.push(`silent ${socket.remotePort ?? ''}`)
    }

    it(
      'ends with its deadline, over all hops, and leaves no connection behind',
      async () => {
        lab.answers['/from'] = redirectTo('/to')
        lab.answers['/to'] = silent
        await expect(lab.get('/from', { deadlineAtMs: performance.now() + 200 })).rejects.toMatchObject({
          kind: 'upstream_timeout',
          message: expect.stringContaining('total time'),
        })
        for (const socket of lab.upstream.sockets) await once(socket, 'close')
      },
      SOON_MS,
    )

    it(
      'does not wait for a name longer than for a connection',
      async () => {
        lab.resolve = () => new Promise(() => undefined)
        const timeouts = { ...GENEROUS_TIMEOUTS, connectMs: 20 }
        await expect(lab.fetchUrl('http://slow.test/', { timeouts })).rejects.toMatchObject({
          kind: 'upstream_timeout',
          details: { attempt: { phase: 'unsent' } },
        })
      },
      SOON_MS,
    )

    it(
      'does not wait longer than it may for the head, nor for the rest',
      async () => {
        lab.answers['/head'] = silent
        lab.answers['/rest'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab')
        const timeouts = { ...GENEROUS_TIMEOUTS, firstByteMs: 50, idleMs: 50 }
        await expect(lab.get('/head', { timeouts })).rejects.toMatchObject({
          kind: 'upstream_timeout',
          message: expect.stringContaining('did not answer in time'),
        })
        await expect(lab.get('/rest', { timeouts }).then(textOf)).rejects.toMatchObject({
          kind: 'upstream_timeout',
          message: expect.stringContaining('in the middle'),
        })
      },
      SOON_MS,
    )

    it(
      'is given up when the caller leaves, in whatever phase',
      async () => {
        const call = newCall()
        lab.answers['/'] = () => {
          call.disconnect.abort()
        }
        await expect(lab.get('/', { context: attemptOf(call) })).rejects.toMatchObject({ kind: 'caller_left' })
        for (const socket of lab.upstream.sockets) await once(socket, 'close')
        await expect(lab.get('/', { context: attemptOf(call) })).rejects.toMatchObject({ kind: 'caller_left' })
        expect(lab.upstream.accepted).toBe(1)

        const early = newCall()
        lab.resolve = () => {
          early.disconnect.abort()
          return new Promise(() => undefined)
        }
        await expect(lab.fetchUrl('http://slow.test/', { context: attemptOf(early) })).rejects.toMatchObject({
          kind: 'caller_left',
        })
      },
      SOON_MS,
    )

    it('fails when the body grows beyond what was asked for', async () => {
      lab.answers['/'] = 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n12345'
      await expect(lab.get('/', { maximumBytes: 4 }).then(textOf)).rejects.toMatchObject({ kind: 'upstream_failed' })
      expect(lab.upstream.accepted).toBe(1)
    })

    it('ends at shutdown', async () => {
      lab.answers['/'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
      const body = textOf(await lab.get('/'))
      const failed = expect(body).rejects.toMatchObject({ kind: 'upstream_failed' })
      await lab.client.onApplicationShutdown()
      await failed
    })

    it('of an unknown name fails as a connection does', async () => {
      lab.resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
      await expect(lab.fetchUrl('http://unknown.test/')).rejects.toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'unsent' } },
      })
    })
  })

  describe('A redirect', () => {
    it.each([301, 302, 303, 307, 308])('of status %i is followed, as its target stands', async (status) => {
      lab.answers['/from'] = redirectTo('to?x=y', status)
      const response = await lab.get('/from')
      expect([response.status, await textOf(response)]).toEqual([200, 'ok'])
      expect(lab.heads[1]).toMatch(/^GET \/to\?x=y HTTP/)
    })

    it.each([
      'http://10.0.0.1/',
      'http://localhost:PORT/',
      'http://rebound.test:PORT/',
      'http://[::1]:PORT/',
      'file:///x',
    ])('to what may not be fetched is refused: %s', async (location) => {
      lab.answers['/from'] = redirectTo(location.replace('PORT', String(lab.upstream.port)))
      await expect(lab.get('/from')).rejects.toEqual(refused)
      expect(lab.upstream.accepted).toBe(1)
    })

    it('is judged by what its host is then, not by what it was', async () => {
      const { port } = lab.upstream
      lab.answers['/from'] = (socket) => {
        lab.allowed = [`127.0.0.1:${port}`]
        void lab.store.reload().then(() => socket.write(redirectTo('/to')))
      }
      await expect(lab.get('/from', {}, 'files.test')).rejects.toEqual(refused)
      expect(lab.resolved).toEqual(['files.test', 'files.test'])
      expect(lab.heads).toHaveLength(1)
    })

    it('shows in the answer, which says where it came from', async () => {
      lab.answers['/from'] = redirectTo(`http://files.test:${lab.upstream.port}/to?x=y`)
      const { url, body } = await lab.client.get(`HTTP://127.0.0.1:${lab.upstream.port}/from#part`, {
        context: attemptOf(newCall()),
        deadlineAtMs: performance.now() + 20_000,
        timeouts: GENEROUS_TIMEOUTS,
      })
      body.cancel()
      expect(url).toBe(`http://files.test:${lab.upstream.port}/to?x=y`)
    })

    it('takes credentials along on its own origin only, and a way back does not restore them', async () => {
      lab.answers['/a'] = redirectTo('/b')
      lab.answers['/b'] = redirectTo(`http://files.test:${lab.upstream.port}/c`)
      lab.answers['/c'] = redirectTo(`http://127.0.0.1:${lab.upstream.port}/d`)
      lab.answers['/d'] = `HTTP/1.1 200 OK\r\ncontent-length: 2\r\nset-cookie: a=b\r\n\r\nok`
      await textOf(await lab.get('/a', { headers: ['authorization', 'Bearer k', 'accept', 'x/y'] }))
      expect(lab.heads.map((head) => head.includes('authorization: Bearer k'))).toEqual([true, true, false, false])
      expect(lab.heads.map((head) => head.includes('accept: x/y'))).toEqual([true, true, true, true])
    })

    it('brings no cookies along', async () => {
      lab.answers['/a'] = redirectTo('/b').replace('location', 'set-cookie: a=b\r\nlocation')
      await textOf(await lab.get('/a'))
      expect(lab.heads[1]).not.toMatch(/cookie/i)
    })

    it('is the last one after three, or after as many as the request says', async () => {
      lab.answers['/loop'] = redirectTo('/loop')
      await expect(lab.get('/loop')).rejects.toEqual(refused)
      expect(lab.heads).toHaveLength(4)
      const tooMany = await lab.get('/loop', { maximumRedirects: 0 }).catch((error: unknown) => error)
      expect(tooMany).toMatchObject({ details: { cause: expect.any(TooManyRedirects) } })
      expect(lab.heads).toHaveLength(5)
      lab.answers['/1'] = redirectTo('/2')
      lab.answers['/2'] = redirectTo('/3')
      lab.answers['/3'] = redirectTo('/4')
      expect((await lab.get('/1')).status).toBe(200)
    })

    it(
      'leaves no connection behind, even if its own answer never ends',
      async () => {
        let first: Socket | undefined
        lab.answers['/from'] = (socket) => {
          first = socket
          socket.write('HTTP/1.1 302 Found\r\nlocation: /to\r\ncontent-length: 9\r\n\r\n')
        }
        expect(await textOf(await lab.get('/from'))).toBe('ok')
        if (first?.destroyed === false) await once(first, 'close')
        expect(first?.destroyed).toBe(true)
      },
      SOON_MS,
    )
  })

  describe('A URL that may be fetched', () => {
    it('is asked for as it stands, with the headers given and nothing that tells of the gateway', async () => {
      const response = await lab.get('/a%20b/c?d=e#f', { headers: ['Accept', 'audio/*', 'X-Key', 'k'] })
      expect([response.status, await textOf(response)]).toEqual([200, 'ok'])
      const [line, ...headers] = lab.heads[0]?.split('\r\n') ?? []
      expect(line).toBe('GET /a%20b/c?d=e HTTP/1.1')
      expect(headers.sort()).toEqual([
        'Accept: audio/*',
        'X-Key: k',
        'connection: close',
        `host: 127.0.0.1:${lab.upstream.port}`,
      ])
    })

    it('answers with any status, and with redirects that do not say where to', async () => {
      lab.answers['/404'] = 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'
      lab.answers['/300'] = 'HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n'
      expect((await lab.get('/404')).status).toBe(404)
      expect((await lab.get('/300')).status).toBe(302)
    })

    it('streams its answer, however long', async () => {
      const length = 8 * 1024 * 1024
      lab.answers['/long'] = (socket) =>
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${'x'.repeat(length)}`)
      expect((await textOf(await lab.get('/long'))).length).toBe(length)
    })

    it('is fetched on a connection of its own, from the one address that was checked', async () => {
      await textOf(await lab.get('/', {}, 'files.test'))
      await textOf(await lab.get('/', {}, 'files.test'))
      expect(lab.resolved).toEqual(['files.test', 'files.test'])
      expect(lab.upstream.accepted).toBe(2)
      expect(lab.heads[0]).toContain(`host: files.test:${lab.upstream.port}`)
    })
  })

  describe('A URL that may not be fetched', () => {
    it.each([
      'http://localhost/',
      'http://rebound.test/',
      'http://127.0.0.1/',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://017700000001/',
      'http://[::1]/',
      'http://[::ffff:127.0.0.1]/',
      'http://0.0.0.0/',
      'https://169.254.169.254/latest/meta-data/',
      'http://[fd00:ec2::254]/',
      'http://10.0.0.1:8080/',
      'file:///etc/passwd',
      'ftp://files.test/',
      'http://u:p@files.test/',
      'not a url',
    ])('is a broken answer when an upstream sent it, and the caller’s fault when a caller did: %s', async (url) => {
      await expect(lab.fetchUrl(url)).rejects.toEqual(refused)
      await expect(lab.fetchUrl(url, { callersField: 'callback_url' })).rejects.toMatchObject({
        kind: 'invalid_request',
        details: { code: 'url_not_allowed', param: 'callback_url' },
      })
      expect(lab.upstream.accepted).toBe(0)
    })

    it('is one on the port of a server that listens here, unless host and port are exempt as they stand', async () => {
      const { port } = lab.upstream
      for (const host of ['localhost', 'other.test', '[::ffff:127.0.0.1]']) {
        await expect(lab.fetchUrl(`http://${host}:${port}/`)).rejects.toEqual(refused)
      }
      lab.allowed = [`127.0.0.1:${port + 1}`, `127.0.0.2:${port}`]
      await lab.store.reload()
      await expect(lab.fetchUrl(`http://127.0.0.1:${port}/`)).rejects.toEqual(refused)
      expect(lab.upstream.accepted).toBe(0)
    })

    it('says nothing of hosts and addresses, to the caller or to the log', async () => {
      const error = await lab
        .fetchUrl('http://secret-host.test/', { callersField: 'url' })
        .catch((thrown: unknown) => thrown)
      const { message, cause } = error as { message: string; cause: Error }
      expect(`${message} ${cause.message}`).not.toMatch(/secret|127|test/)
    })

    it('is one whose host has a private address beside a public one', async () => {
      lab.resolve = () =>
        Promise.resolve([
          { address: '8.8.8.8', family: 4 },
          { address: '127.0.0.1', family: 4 },
        ])
      await expect(lab.fetchUrl(`http://mixed.test:${lab.upstream.port}/`)).rejects.toEqual(refused)
      expect(lab.upstream.accepted).toBe(0)
    })

    it('is one that was allowed before a reload, although a connection to it was open', async () => {
      lab.answers['/'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
      const before = await lab.get('/', {}, 'files.test')
      lab.allowed = []
      await lab.store.reload()
      await expect(lab.get('/', {}, 'files.test')).rejects.toEqual(refused)
      for (const socket of lab.upstream.sockets) socket.write('cd')
      expect(await textOf(before)).toBe('abcd')
    })
  })

  describe('The module', () => {
    it('gives a client that asks the resolver of the system', async () => {
      const module = await Test.createTestingModule({ imports: [HttpModule] })
        .useMocker((token) => (token === ConfigStore ? lab.store : undefined))
        .compile()
      const guarded = module.get(SafeFetchClient)
      const request = {
        context: attemptOf(newCall()),
        deadlineAtMs: performance.now() + 20_000,
        timeouts: GENEROUS_TIMEOUTS,
      }
      await expect(guarded.get(`http://localhost:${lab.upstream.port}/`, request)).rejects.toEqual(refused)
      expect(lab.upstream.accepted).toBe(0)
      await module.close()
    })
  })
})

describe('A post of a guarded client', () => {
  /** Well below the deadlines that end a request when the one under test does not. */
  const SOON_MS = 8000

  let receiver: RawUpstream
  let heads: string[]
  let answer: (socket: Socket) => void
  let resolve: ResolveHost
  let client: SafeFetchClient

  beforeEach(async () => {
    heads = []
    answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    receiver = await startRawUpstream((socket, head) => {
      heads.push(head)
      answer(socket)
    })
    const allow = [`127.0.0.1:${receiver.port}`]
    resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
    client = new SafeFetchClient(new ConfigStore(parseConfig(JSON.stringify({ ssrf: { allow } }), {})), (host) =>
      resolve(host),
    )
  })
  afterEach(async () => {
    await client.onApplicationShutdown()
    await receiver.close()
  })

  const post = (path = '/', changes: Partial<SafeFetchPost> = {}) =>
    client.post(`http://127.0.0.1:${receiver.port}${path}`, {
      context: attemptOf(newCall()),
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
          call.disconnect.abort()
        }
        await expect(post('/', { context: attemptOf(call) })).rejects.toMatchObject({ kind: 'caller_left' })
        await allClosed()
      },
      SOON_MS,
    )

    it('to an address that is not allowed names the field of the caller who sent it', async () => {
      const request = {
        context: attemptOf(newCall()),
        deadlineAtMs: performance.now() + 20_000,
        timeouts: GENEROUS_TIMEOUTS,
      }
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

    it('passes when its addresses are public, or the operator exempts it; no server is called', async () => {
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
})

describe('A private address', () => {
  /** Listens at every address of this machine: each connection that gets through is counted. */
  let target: UntouchedServer
  let resolve: ResolveHost
  let clients: SafeFetchClient[]

  beforeEach(async () => {
    target = await startUntouchedServer()
    resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
    clients = []
  })
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.onApplicationShutdown()))
    await target.close()
  })

  function clientAllowing(...allow: string[]): SafeFetchClient {
    const store = new ConfigStore(parseConfig(JSON.stringify({ ssrf: { allow } }), {}))
    const client = new SafeFetchClient(store, (host) => resolve(host))
    clients.push(client)
    return client
  }

  const request = () => ({
    context: attemptOf(newCall()),
    deadlineAtMs: performance.now() + 20_000,
    timeouts: GENEROUS_TIMEOUTS,
  })
  const VERBS = {
    get: (client: SafeFetchClient, url: string) => client.get(url, request()),
    post: (client: SafeFetchClient, url: string) => client.post(url, { ...request(), body: Buffer.from('{}') }),
  }
  const verb = fc.constantFrom('get', 'post')

  const refused = expect.objectContaining({ details: expect.objectContaining({ cause: expect.any(AddressRefused) }) })

  async function expectRefused(url: string, by: 'get' | 'post', client = clientAllowing()): Promise<void> {
    const outcome = await VERBS[by](client, url).then(
      ({ status }) => status,
      (error: unknown) => error,
    )
    expect([url, outcome]).toEqual([url, refused])
  }

  const octet = fc.integer({ min: 0, max: 255 })
  /** All of 127.0.0.0/8 is this machine, and so is 0.0.0.0. */
  const loopback = fc.oneof(
    fc.constantFrom([127, 0, 0, 1], [0, 0, 0, 0]),
    fc.tuple(fc.constant(127), octet, octet, octet),
  )

  const WRITTEN: readonly ((part: number) => string)[] = [
    String,
    (part) => `0${part.toString(8)}`,
    (part) => `0000${part.toString(8)}`,
    (part) => `0x${part.toString(16)}`,
    (part) => `0X${part.toString(16).toUpperCase()}`,
  ]
  const written = fc.constantFrom(...WRITTEN)

  const numberOf = (parts: readonly number[]): number => parts.reduce((total, part) => total * 256 + part, 0)

  /** One to four parts, each decimal, octal or hexadecimal; the last one takes what is left. */
  const ipv4Spelling = fc
    .tuple(loopback, fc.integer({ min: 0, max: 3 }), fc.array(written, { minLength: 4, maxLength: 4 }))
    .map(([parts, cut, styles]) =>
      [...parts.slice(0, cut), numberOf(parts.slice(cut))]
        .map((part, index) => (styles[index] ?? String)(part))
        .join('.'),
    )

  /** Full-width digits, ideographic stops, escapes and a stop at the end mean the same to a URL. */
  const disguise = fc.constantFrom<(text: string) => string>(
    (text) => text,
    (text) => `${text}.`,
    (text) => text.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    (text) => text.replaceAll('.', '。'),
    (text) => text.replaceAll(/\d/g, (digit) => `%3${digit}`),
  )
  const disguised = fc.tuple(ipv4Spelling, disguise).map(([text, change]) => change(text))

  const hextet = (high = 0, low = 0): string => (high * 256 + low).toString(16)
  const carrier = fc.constantFrom<(dotted: string, high: string, low: string) => string>(
    (dotted) => `::ffff:${dotted}`,
    (_, high, low) => `::ffff:${high}:${low}`,
    (_, high, low) => `0:0:0:0:0:FFFF:${high}:${low}`,
    (dotted) => `::${dotted}`,
    (dotted) => `64:ff9b::${dotted}`,
    (_, high, low) => `64:ff9b:1::${high}:${low}`,
    (_, high, low) => `2002:${high}:${low}::1`,
    (_, high, low) => `2001:0:${high}:${low}::1`,
    () => '::1',
    () => '::',
    () => 'fe80::1',
  )
  const ipv6 = fc
    .tuple(loopback, carrier)
    .map(([[a, b, c, d], spell]) => spell([a, b, c, d].join('.'), hextet(a, b), hextet(c, d)))
  const zone = fc.constantFrom('', '', '%lo', '%25lo', '%1', '%251')
  const literal = fc.oneof(
    disguised,
    fc.tuple(ipv6, zone).map(([address, suffix]) => `[${address}${suffix}]`),
  )

  it('is never reached, however the URL spells it', async () => {
    await fc.assert(
      fc.asyncProperty(literal, verb, async (host, by) => {
        await expectRefused(`http://${host}:${target.port}/`, by)
      }),
      { numRuns: 400 },
    )
    expect(target.accepted).toBe(0)
  })

  it('is reached by the same spellings once it is exempt, so that the servers here would notice', async () => {
    const client = clientAllowing(`127.0.0.1:${target.port}`)
    for (const host of ['2130706433', '0x7f.1', '０177.0.0.1', '127.0.0.1.']) {
      expect((await client.get(`http://${host}:${target.port}/`, request())).status).toBe(200)
    }
    expect((await VERBS.post(client, `http://127.1:${target.port}/`)).status).toBe(200)
    expect(target.accepted).toBe(5)
  })

  it('is never reached behind a user, or a public address that only looks like the host', async () => {
    const user = fc.constantFrom('8.8.8.8', 'u', 'u:p', ':p', '8.8.8.8:80', 'example.com%2f', 'a%40b')
    await fc.assert(
      fc.asyncProperty(user, literal, verb, async (name, host, by) => {
        await expectRefused(`http://${name}@${host}:${target.port}/`, by)
      }),
    )
    for (const url of [
      `http://127.0.0.1:${target.port}\\@8.8.8.8/`,
      `http://127.0.0.1:${target.port}#@8.8.8.8/`,
      `http:\\\\127.0.0.1:${target.port}\\`,
      `http:127.0.0.1:${target.port}`,
      `\thttp://127.0.0.1:${target.port}/\n`,
    ]) {
      await expectRefused(url, 'get')
      await expectRefused(url, 'post')
    }
    expect(target.accepted).toBe(0)
  })

  it('is never reached by a name, whatever else the name server says beside it', async () => {
    const name = fc.constantFrom('localhost', 'LOCALHOST', 'localhost.', 'rebind.test', 'rebind.test.', 'a.b.localhost')
    const address = fc.oneof(
      loopback.map((parts) => ({ address: parts.join('.'), family: 4 })),
      ipv6.map((text) => ({ address: text, family: 6 })),
    )
    const isFirst = fc.boolean()
    await fc.assert(
      fc.asyncProperty(name, address, isFirst, verb, async (host, hidden, first, by) => {
        const open = { address: '8.8.8.8', family: 4 }
        resolve = () => Promise.resolve(first ? [hidden, open] : [open, hidden])
        await expectRefused(`http://${host}:${target.port}/`, by)
        resolve = () => Promise.resolve([hidden])
        await expectRefused(`http://${host}:${target.port}/`, by)
      }),
    )
    expect(target.accepted).toBe(0)
  })

  it('is never reached by a name that was public when it was judged, and is private when it is used', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), verb, async (publicAnswers, by) => {
        let asked = 0
        resolve = () => {
          const address = asked++ < publicAnswers ? '8.8.8.8' : '127.0.0.1'
          return Promise.resolve([{ address, family: 4 }])
        }
        const client = clientAllowing()
        const url = `http://rebind.test:${target.port}/`
        for (let judged = 0; judged < publicAnswers; judged++) await client.assertAllowed(url, 'callback_url', 1000)
        await expectRefused(url, by, client)
        // Asked once for each use: there is no second answer between check and connection.
        expect(asked).toBe(publicAnswers + 1)
      }),
      { numRuns: 20 },
    )
    expect(target.accepted).toBe(0)
  })

  it('is never reached by a redirect, whatever its status and however it spells the address', async () => {
    let location = ''
    let status = 302
    const receiver = await startRawUpstream((socket) => {
      socket.end(`HTTP/1.1 ${status} Moved\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)
    })
    const client = clientAllowing(`127.0.0.1:${receiver.port}`)
    const url = `http://127.0.0.1:${receiver.port}/`
    const ascii = literal.filter((host) => /^[\x21-\x7e]+$/.test(host))
    const anyStatus = fc.constantFrom(301, 302, 303, 307, 308)
    await fc.assert(
      fc.asyncProperty(ascii, anyStatus, fc.constantFrom('http://', '//'), async (host, code, prefix) => {
        status = code
        location = `${prefix}${host}:${target.port}/`
        await expectRefused(url, 'get', client)
        expect((await VERBS.post(client, url)).status).toBe(code)
      }),
    )
    expect(target.accepted).toBe(0)
    await receiver.close()
  })
})

describe('A URL that is judged here and fetched by another server', () => {
  /** As many lookups as may hang before the next one is refused. */
  const MOST_LOOKUPS = 128

  let resolve: ResolveHost
  let client: SafeFetchClient
  beforeEach(() => {
    client = new SafeFetchClient(new ConfigStore(parseConfig('{}', {})), (host) => resolve(host))
  })
  afterEach(() => client.onApplicationShutdown())

  const judge = (url: string, resolveMs = 20_000): Promise<void> => client.assertAllowedElsewhere(url, 'url', resolveMs)

  const failing = (code: string) => (): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }))
  const never = (): Promise<never> => new Promise(() => undefined)

  it('passes when its addresses are public, or when there is no such name', async () => {
    await judge('https://8.8.8.8/')
    resolve = () => Promise.resolve([{ address: '8.8.8.8', family: 4 }])
    await judge('https://public.test/')
    for (const code of ['ENOTFOUND', 'ENODATA']) {
      resolve = failing(code)
      await judge('https://unknown.test/')
    }
  })

  it('is refused as one that is fetched here', async () => {
    resolve = () => Promise.resolve([{ address: '10.0.0.5', family: 4 }])
    const refusal = { kind: 'invalid_request', details: { code: 'url_not_allowed', param: 'url' } }
    for (const url of ['http://127.0.0.1/', 'http://private.test/', 'http://8.8.8.8:22/', 'ws://8.8.8.8/'])
      await expect(judge(url)).rejects.toMatchObject(refusal)
  })

  it('does not pass unjudged when its name server is slow: a private address may come a moment later', async () => {
    resolve = never
    await expect(judge('https://slow.test/', 10)).rejects.toMatchObject({
      kind: 'upstream_timeout',
      message: "The host of 'url' could not be looked up in time.",
    })
  })

  it('does not pass unjudged when its name server has no answer, or so many names hang that it is not asked', async () => {
    const unjudged = { kind: 'upstream_failed', message: "The host of 'url' could not be looked up." }
    for (const code of ['EAI_AGAIN', 'EAI_FAIL', 'ESERVFAIL']) {
      resolve = failing(code)
      await expect(judge('https://broken.test/')).rejects.toMatchObject(unjudged)
    }
    resolve = never
    const hanging = Array.from({ length: MOST_LOOKUPS }, () => judge('https://slow.test/', 1000))
    await expect(judge('https://private.test/')).rejects.toMatchObject(unjudged)
    for (const { status } of await Promise.allSettled(hanging)) expect(status).toBe('rejected')
  })
})
