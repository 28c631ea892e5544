import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Test } from '@nestjs/testing'
import { GENEROUS_TIMEOUTS, newCall, type RawUpstream, startRawUpstream } from '../../../test/support/raw-upstream.js'
import { parseConfig } from '../../config/config-loader.js'
import { ConfigStore } from '../../config/config-store.js'
import { AddressRefused, type ResolveHost, TooManyRedirects } from './address-guard.js'
import { collect } from './byte-source.js'
import { GuardedClient, type GuardedRequest } from './guarded-client.js'
import { HttpModule } from './http.module.js'
import type { UpstreamResponse } from './upstream-exchange.js'

/** Well below the deadlines that end a fetch when the one under test does not. */
const SOON_MS = 8000

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const redirectTo = (location: string, status = 302): string =>
  `HTTP/1.1 ${status} Found\r\nlocation: ${location}\r\ncontent-length: 3\r\n\r\nbye`

let upstream: RawUpstream
let heads: string[]
/** What the upstream does with the next requests, by path. */
let answers: Record<string, string | ((socket: Socket) => void)>
/** Exemptions after the next reload. */
let allowed: string[]
let store: ConfigStore
let client: GuardedClient
/** Names that were resolved, in order; each resolves to this machine. */
let resolved: string[]
let resolve: ResolveHost

const configOf = (allow: readonly string[]) => parseConfig(JSON.stringify({ ssrf: { allow } }), {})

beforeEach(async () => {
  heads = []
  answers = {}
  upstream = await startRawUpstream((socket, head) => {
    heads.push(head)
    const answer = answers[head.split(' ')[1] ?? ''] ?? OK
    if (typeof answer === 'string') socket.write(answer)
    else answer(socket)
  })
  allowed = [`127.0.0.1:${upstream.port}`, `files.test:${upstream.port}`]
  store = new ConfigStore(configOf(allowed), () => Promise.resolve({ config: configOf(allowed), file: '' }))
  resolved = []
  resolve = (host) => {
    resolved.push(host)
    return Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  }
  client = new GuardedClient(store, (host) => resolve(host))
})
afterEach(async () => {
  await client.onApplicationShutdown()
  await upstream.close()
})

const get = (path: string, changes: Partial<GuardedRequest> = {}, host = '127.0.0.1'): Promise<UpstreamResponse> =>
  fetchUrl(`http://${host}:${upstream.port}${path}`, changes)

const fetchUrl = (url: string, changes: Partial<GuardedRequest> = {}): Promise<UpstreamResponse> =>
  client.get(url, {
    call: newCall(),
    deadlineAtMs: performance.now() + 20_000,
    timeouts: GENEROUS_TIMEOUTS,
    ...changes,
  })

const textOf = async ({ body }: UpstreamResponse): Promise<string> =>
  (
    await collect(body, Infinity, () => {
      throw new Error('unreachable')
    })
  ).toString()

/** A refused URL, as it looks when an upstream sent it. */
const refused = expect.objectContaining({
  kind: 'upstream_failed',
  details: { cause: expect.any(AddressRefused), attempt: { phase: 'answered', channelFault: true } },
})

describe('A URL that may be fetched', () => {
  it('is asked for as it stands, with the headers given and nothing that tells of the gateway', async () => {
    const response = await get('/a%20b/c?d=e#f', { headers: ['Accept', 'audio/*', 'X-Key', 'k'] })
    expect([response.status, await textOf(response)]).toEqual([200, 'ok'])
    const [line, ...headers] = heads[0]?.split('\r\n') ?? []
    expect(line).toBe('GET /a%20b/c?d=e HTTP/1.1')
    expect(headers.sort()).toEqual([
      'Accept: audio/*',
      'X-Key: k',
      'connection: close',
      `host: 127.0.0.1:${upstream.port}`,
    ])
  })

  it('answers with any status, and with redirects that do not say where to', async () => {
    answers['/404'] = 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'
    answers['/300'] = 'HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n'
    expect((await get('/404')).status).toBe(404)
    expect((await get('/300')).status).toBe(302)
  })

  it('streams its answer, however long', async () => {
    const length = 8 * 1024 * 1024
    answers['/long'] = (socket) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${'x'.repeat(length)}`)
    expect((await textOf(await get('/long'))).length).toBe(length)
  })

  it('is fetched on a connection of its own, from the one address that was checked', async () => {
    await textOf(await get('/', {}, 'files.test'))
    await textOf(await get('/', {}, 'files.test'))
    expect(resolved).toEqual(['files.test', 'files.test'])
    expect(upstream.accepted).toBe(2)
    expect(heads[0]).toContain(`host: files.test:${upstream.port}`)
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
    await expect(fetchUrl(url)).rejects.toEqual(refused)
    await expect(fetchUrl(url, { callersField: 'callback_url' })).rejects.toMatchObject({
      kind: 'invalid_request',
      details: { code: 'url_not_allowed', param: 'callback_url' },
    })
    expect(upstream.accepted).toBe(0)
  })

  it('is one on the port of a server that listens here, unless host and port are exempt as they stand', async () => {
    const { port } = upstream
    for (const host of ['localhost', 'other.test', '[::ffff:127.0.0.1]']) {
      await expect(fetchUrl(`http://${host}:${port}/`)).rejects.toEqual(refused)
    }
    allowed = [`127.0.0.1:${port + 1}`, `127.0.0.2:${port}`]
    await store.reload()
    await expect(fetchUrl(`http://127.0.0.1:${port}/`)).rejects.toEqual(refused)
    expect(upstream.accepted).toBe(0)
  })

  it('says nothing of hosts and addresses, to the caller or to the log', async () => {
    const error = await fetchUrl('http://secret-host.test/', { callersField: 'url' }).catch((thrown: unknown) => thrown)
    const { message, cause } = error as { message: string; cause: Error }
    expect(`${message} ${cause.message}`).not.toMatch(/secret|127|test/)
  })

  it('is one whose host has a private address beside a public one', async () => {
    resolve = () =>
      Promise.resolve([
        { address: '8.8.8.8', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ])
    await expect(fetchUrl(`http://mixed.test:${upstream.port}/`)).rejects.toEqual(refused)
    expect(upstream.accepted).toBe(0)
  })

  it('is one that was allowed before a reload, although a connection to it was open', async () => {
    answers['/'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
    const before = await get('/', {}, 'files.test')
    allowed = []
    await store.reload()
    await expect(get('/', {}, 'files.test')).rejects.toEqual(refused)
    for (const socket of upstream.sockets) socket.write('cd')
    expect(await textOf(before)).toBe('abcd')
  })
})

describe('A redirect', () => {
  it.each([301, 302, 303, 307, 308])('of status %i is followed, as its target stands', async (status) => {
    answers['/from'] = redirectTo('to?x=y', status)
    const response = await get('/from')
    expect([response.status, await textOf(response)]).toEqual([200, 'ok'])
    expect(heads[1]).toMatch(/^GET \/to\?x=y HTTP/)
  })

  it.each([
    'http://10.0.0.1/',
    'http://localhost:PORT/',
    'http://rebound.test:PORT/',
    'http://[::1]:PORT/',
    'file:///x',
  ])('to what may not be fetched is refused: %s', async (location) => {
    answers['/from'] = redirectTo(location.replace('PORT', String(upstream.port)))
    await expect(get('/from')).rejects.toEqual(refused)
    expect(upstream.accepted).toBe(1)
  })

  it('is judged by what its host is then, not by what it was', async () => {
    const { port } = upstream
    answers['/from'] = (socket) => {
      allowed = [`127.0.0.1:${port}`]
      void store.reload().then(() => socket.write(redirectTo('/to')))
    }
    await expect(get('/from', {}, 'files.test')).rejects.toEqual(refused)
    expect(resolved).toEqual(['files.test', 'files.test'])
    expect(heads).toHaveLength(1)
  })

  it('shows in the answer, which says where it came from', async () => {
    answers['/from'] = redirectTo(`http://files.test:${upstream.port}/to?x=y`)
    const { url, body } = await client.get(`HTTP://127.0.0.1:${upstream.port}/from#part`, {
      call: newCall(),
      deadlineAtMs: performance.now() + 20_000,
      timeouts: GENEROUS_TIMEOUTS,
    })
    body.cancel()
    expect(url).toBe(`http://files.test:${upstream.port}/to?x=y`)
  })

  it('takes credentials along on its own origin only, and a way back does not restore them', async () => {
    answers['/a'] = redirectTo('/b')
    answers['/b'] = redirectTo(`http://files.test:${upstream.port}/c`)
    answers['/c'] = redirectTo(`http://127.0.0.1:${upstream.port}/d`)
    answers['/d'] = `HTTP/1.1 200 OK\r\ncontent-length: 2\r\nset-cookie: a=b\r\n\r\nok`
    await textOf(await get('/a', { headers: ['authorization', 'Bearer k', 'accept', 'x/y'] }))
    expect(heads.map((head) => head.includes('authorization: Bearer k'))).toEqual([true, true, false, false])
    expect(heads.map((head) => head.includes('accept: x/y'))).toEqual([true, true, true, true])
  })

  it('brings no cookies along', async () => {
    answers['/a'] = redirectTo('/b').replace('location', 'set-cookie: a=b\r\nlocation')
    await textOf(await get('/a'))
    expect(heads[1]).not.toMatch(/cookie/i)
  })

  it('is the last one after three, or after as many as the request says', async () => {
    answers['/loop'] = redirectTo('/loop')
    await expect(get('/loop')).rejects.toEqual(refused)
    expect(heads).toHaveLength(4)
    const tooMany = await get('/loop', { maximumRedirects: 0 }).catch((error: unknown) => error)
    expect(tooMany).toMatchObject({ details: { cause: expect.any(TooManyRedirects) } })
    expect(heads).toHaveLength(5)
    answers['/1'] = redirectTo('/2')
    answers['/2'] = redirectTo('/3')
    answers['/3'] = redirectTo('/4')
    expect((await get('/1')).status).toBe(200)
  })

  it(
    'leaves no connection behind, even if its own answer never ends',
    async () => {
      let first: Socket | undefined
      answers['/from'] = (socket) => {
        first = socket
        socket.write('HTTP/1.1 302 Found\r\nlocation: /to\r\ncontent-length: 9\r\n\r\n')
      }
      expect(await textOf(await get('/from'))).toBe('ok')
      if (first?.destroyed === false) await once(first, 'close')
      expect(first?.destroyed).toBe(true)
    },
    SOON_MS,
  )
})

describe('A fetch', () => {
  const silent = (socket: Socket): void => {
    heads.push(`silent ${socket.remotePort ?? ''}`)
  }

  it(
    'ends with its deadline, over all hops, and leaves no connection behind',
    async () => {
      answers['/from'] = redirectTo('/to')
      answers['/to'] = silent
      await expect(get('/from', { deadlineAtMs: performance.now() + 200 })).rejects.toMatchObject({
        kind: 'upstream_timeout',
        message: expect.stringContaining('total time'),
      })
      for (const socket of upstream.sockets) await once(socket, 'close')
    },
    SOON_MS,
  )

  it(
    'does not wait for a name longer than for a connection',
    async () => {
      resolve = () => new Promise(() => undefined)
      const timeouts = { ...GENEROUS_TIMEOUTS, connectMs: 20 }
      await expect(fetchUrl('http://slow.test/', { timeouts })).rejects.toMatchObject({
        kind: 'upstream_timeout',
        details: { attempt: { phase: 'unsent' } },
      })
    },
    SOON_MS,
  )

  it(
    'does not wait longer than it may for the head, nor for the rest',
    async () => {
      answers['/head'] = silent
      answers['/rest'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab')
      const timeouts = { ...GENEROUS_TIMEOUTS, firstByteMs: 50, idleMs: 50 }
      await expect(get('/head', { timeouts })).rejects.toMatchObject({
        kind: 'upstream_timeout',
        message: expect.stringContaining('did not answer in time'),
      })
      await expect(get('/rest', { timeouts }).then(textOf)).rejects.toMatchObject({
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
      answers['/'] = () => {
        call.departure.announce()
      }
      await expect(get('/', { call })).rejects.toMatchObject({ kind: 'caller_left' })
      for (const socket of upstream.sockets) await once(socket, 'close')
      await expect(get('/', { call })).rejects.toMatchObject({ kind: 'caller_left' })
      expect(upstream.accepted).toBe(1)

      const early = newCall()
      resolve = () => {
        early.departure.announce()
        return new Promise(() => undefined)
      }
      await expect(fetchUrl('http://slow.test/', { call: early })).rejects.toMatchObject({ kind: 'caller_left' })
    },
    SOON_MS,
  )

  it('fails when the body grows beyond what was asked for', async () => {
    answers['/'] = 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n12345'
    await expect(get('/', { maximumBytes: 4 }).then(textOf)).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(upstream.accepted).toBe(1)
  })

  it('ends at shutdown', async () => {
    answers['/'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
    const body = textOf(await get('/'))
    const failed = expect(body).rejects.toMatchObject({ kind: 'upstream_failed' })
    await client.onApplicationShutdown()
    await failed
  })

  it('of a name nobody knows fails as a connection does', async () => {
    resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    await expect(fetchUrl('http://unknown.test/')).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent' } },
    })
  })
})

describe('The module', () => {
  it('gives a client that asks the resolver of the system', async () => {
    const module = await Test.createTestingModule({ imports: [HttpModule] })
      .useMocker((token) => (token === ConfigStore ? store : undefined))
      .compile()
    const guarded = module.get(GuardedClient)
    const request = { call: newCall(), deadlineAtMs: performance.now() + 20_000, timeouts: GENEROUS_TIMEOUTS }
    await expect(guarded.get(`http://localhost:${upstream.port}/`, request)).rejects.toEqual(refused)
    expect(upstream.accepted).toBe(0)
    await module.close()
  })
})
