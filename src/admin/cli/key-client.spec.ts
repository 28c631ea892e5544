import { rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { afterEach, describe, expect, it } from '@jest/globals'
import { HttpKeyAdmin, KeyAdminFailure } from './key-client.js'
import { downloadSnapshot, StoreDownloadFailure } from './store-client.js'

const ADMIN_KEY = 'sk-gw-admin-canary'
const UNREACHABLE = 'The gateway that --url names cannot be reached.'

const servers: Server[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

async function serve(listener: RequestListener): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    listener(request, response)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

const failure = (work: Promise<unknown>, kind: new () => Error = KeyAdminFailure): Promise<Error> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => {
      expect(error).toBeInstanceOf(kind)
      expect(inspect(error, { depth: 5 })).not.toContain(ADMIN_KEY)
      return error as Error
    },
  )

describe('The key command at a gateway', () => {
  it('sends what was typed as JSON with the admin key, behind the path of the address', async () => {
    const bodies: Promise<string>[] = []
    const { url, requests } = await serve((request, response) => {
      bodies.push(text(request))
      response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"a","key":"k"}')
    })
    expect(await new HttpKeyAdmin(`${url}/behind/`, ADMIN_KEY).create({ note: 'ü' })).toEqual({ id: 'a', key: 'k' })
    expect(requests[0]).toMatchObject({ method: 'POST', url: '/behind/admin/v1/keys' })
    expect(requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${ADMIN_KEY}`,
      'content-type': 'application/json',
    })
    expect(await bodies[0]).toBe('{"note":"ü"}')
  })

  it.each([301, 302, 303, 307, 308])('follows no redirect with the admin key: %i', async (status) => {
    const other = await serve((_request, response) => response.end('{}'))
    const { url } = await serve((_request, response) => {
      response.writeHead(status, { location: `${other.url.replace('127.0.0.1', 'localhost')}/` }).end('{}')
    })
    expect((await failure(new HttpKeyAdmin(url, ADMIN_KEY).show('a'))).message).toBe(UNREACHABLE)
    expect(other.requests).toEqual([])
  })

  it.each([
    [200, '<html>', 'The gateway answered with status 200.'],
    [200, '', 'The gateway answered with status 200.'],
    [200, '{"id":', 'The gateway answered with status 200.'],
    [502, '<html>bad gateway', 'The gateway answered with status 502.'],
    [403, '{"error":{"message":"No."}}', 'No.'],
  ])('names what it cannot use: %i with %j', async (status, body, message) => {
    const { url } = await serve((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    })
    expect((await failure(new HttpKeyAdmin(url, ADMIN_KEY).show('a'))).message).toBe(message)
  })

  it('reads no answer without end', async () => {
    const mebibyte = Buffer.alloc(1024 * 1024, ' ')
    let sentBytes = 0
    const { url } = await serve((_request, response) => {
      // On newer Nodes a write fails before its response says that it is destroyed.
      const more = (error?: Error | null): void => {
        sentBytes += mebibyte.length
        if (error == null && !response.destroyed) response.write(mebibyte, more)
      }
      more()
    })
    const { message } = await failure(new HttpKeyAdmin(url, ADMIN_KEY).show('a'))
    expect(message).toBe('The gateway answered with more than 33554432 bytes.')
    expect(sentBytes).toBeLessThan(128 * mebibyte.length)
  })

  it.each([
    ['no answer', () => undefined],
    ['half an answer', (_request, response) => response.write('{"id":')],
  ] as const satisfies readonly (readonly [string, RequestListener])[])(
    'waits no longer than its deadline: %s',
    async (_what, listener) => {
      const { url } = await serve(listener)
      expect((await failure(new HttpKeyAdmin(url, ADMIN_KEY, 100).show('a'))).message).toBe(UNREACHABLE)
    },
  )

  it('takes no part of an answer for the whole', async () => {
    const { url } = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"id":"a"}', () => response.destroy())
    })
    expect((await failure(new HttpKeyAdmin(url, ADMIN_KEY).show('a'))).message).toBe(UNREACHABLE)
  })

  it('says so when nothing listens', async () => {
    expect((await failure(new HttpKeyAdmin('http://127.0.0.1:1', ADMIN_KEY).show('a'))).message).toBe(UNREACHABLE)
  })
})

describe('The download of the store of a gateway', () => {
  const folder = join(tmpdir(), `gateway-download-${process.pid}`)
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const download = async (url: string): Promise<string> =>
    (await failure(downloadSnapshot(url, ADMIN_KEY, folder), StoreDownloadFailure)).message

  it.each([
    [403, '{"error":{"message":"No."}}', 'No.'],
    [404, '{"error":{"message":"Unknown."}}', expect.stringContaining('auth.adminKey')],
    [302, '', 'The gateway answered with status 302.'],
    [502, '<html>bad gateway', 'The gateway answered with status 502.'],
  ])('says why there is none: %i with %j', async (status, body, message) => {
    const { url, requests } = await serve((_request, response) => {
      response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body)
    })
    expect(await download(`${url}/`)).toEqual(message)
    expect(requests[0]).toMatchObject({ method: 'POST', url: '/admin/v1/store/backup' })
  })

  it.each([
    [500, 'The gateway answered with status 500.'],
    [200, 'The gateway did not send its store to the end; nothing was kept.'],
  ])('says so when an answer with status %i breaks off', async (status, message) => {
    const { url } = await serve((_request, response) => {
      response.writeHead(status, { 'content-length': '100' })
      response.write('{"error":', () => response.destroy())
    })
    expect(await download(url)).toBe(message)
  })

  it.each<[what: string, body: Buffer]>([
    ['a page', Buffer.from(`<html>${'x'.repeat(200_000)}`)],
    ['a short text', Buffer.from('{"status":"ok"}')],
    ['nothing', Buffer.alloc(0)],
    ['an empty archive', Buffer.alloc(1024)],
  ])('says so when the answer is %s and no store', async (_what, body) => {
    const { url } = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-tar' }).end(body)
    })
    expect(await download(url)).toBe(
      'The answer is not the store of a gateway; nothing was kept. See that --url names the gateway itself.',
    )
  })

  it('says so when nothing listens', async () => {
    expect(await download('http://127.0.0.1:1')).toBe(UNREACHABLE)
  })
})
