import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Test } from '@nestjs/testing'
import { GuardedLab, refused, textOf } from '../../test/support/outbound-labs.js'
import { GENEROUS_TIMEOUTS, newCall } from '../../test/support/raw-upstream.js'
import { ConfigStore } from '../config/config-store.js'
import { GuardedClient } from './safe-fetch.js'
import { HttpModule } from './upstream.module.js'

let lab: GuardedLab
beforeEach(async () => {
  lab = await GuardedLab.start()
})
afterEach(async () => {
  await lab.close()
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
    const guarded = module.get(GuardedClient)
    const request = { call: newCall(), deadlineAtMs: performance.now() + 20_000, timeouts: GENEROUS_TIMEOUTS }
    await expect(guarded.get(`http://localhost:${lab.upstream.port}/`, request)).rejects.toEqual(refused)
    expect(lab.upstream.accepted).toBe(0)
    await module.close()
  })
})
