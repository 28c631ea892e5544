import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../../test/support/audio-uploads.js'
import { answerOf, type DocumentTarget, redirectTo, startDocumentTarget } from '../../test/support/document-target.js'
import { FORBIDDEN_URLS } from '../../test/support/forbidden-urls.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { startUntouchedServer, type UntouchedServer } from '../../test/support/untouched-server.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { GuardedClient } from '../upstream/safe-fetch.js'
import { AddressRefused, type ResolveHost } from '../upstream/ssrf-guard.js'
import { DocumentClient, type FetchedDocument } from './document.client.js'
import { FetchesInFlight } from './fetches-in-flight.js'

let target: DocumentTarget
/** Listens at every address of this machine: whoever gets through is counted. */
let untouched: UntouchedServer
let resolve: ResolveHost
let guarded: GuardedClient
let client: DocumentClient

const LOOPBACK = { address: '127.0.0.1', family: 4 }
const PUBLIC = { address: '8.8.8.8', family: 4 }

beforeEach(async () => {
  target = await startDocumentTarget()
  untouched = await startUntouchedServer()
  resolve = () => Promise.resolve([LOOPBACK])
  const allow = [`127.0.0.1:${target.port}`, `files.test:${target.port}`]
  const store = new ConfigStore(parseConfig(JSON.stringify({ ssrf: { allow } }), {}))
  guarded = new GuardedClient(store, (host) => resolve(host))
  client = new DocumentClient(guarded, store, new FetchesInFlight(store))
})
afterEach(async () => {
  await guarded.onApplicationShutdown()
  expect(untouched.accepted).toBe(0)
  await target.close()
  await untouched.close()
  expect(spoolsLeft()).toEqual([])
})

const fetchUrl = (url: string): Promise<FetchedDocument> => client.fetch(url, newCall(), performance.now() + 20_000)

const refused = expect.objectContaining({
  kind: 'invalid_request',
  details: expect.objectContaining({ param: 'url', code: 'url_not_allowed', cause: expect.any(AddressRefused) }),
})
const expectRefused = async (url: string): Promise<void> => {
  const outcome = await fetchUrl(url).catch((error: unknown) => error)
  expect([url, outcome]).toEqual([url, refused])
}

describe('A private address', () => {
  it.each(FORBIDDEN_URLS)('is never reached: %s', async (_name, urlFor) => {
    await expectRefused(urlFor(untouched.port))
  })

  it('is never reached by a name, whatever else the name server says beside it', async () => {
    const url = `http://rebind.test:${untouched.port}/`
    for (const addresses of [[LOOPBACK], [PUBLIC, LOOPBACK], [LOOPBACK, PUBLIC], [{ address: '::1', family: 6 }]]) {
      resolve = () => Promise.resolve(addresses)
      await expectRefused(url)
    }
  })

  it('is never reached by a name that was public a moment ago', async () => {
    let asked = 0
    resolve = (host) => Promise.resolve([host === 'files.test' || asked++ > 0 ? LOOPBACK : PUBLIC])
    await guarded.assertAllowed(`http://rebind.test:${untouched.port}/`, 'url', 1000)
    await expectRefused(`http://rebind.test:${untouched.port}/`)
    asked = 1
    target.answers.set('/start', redirectTo(`http://rebind.test:${untouched.port}/`))
    await expectRefused(`http://files.test:${target.port}/start`)
    expect(target.heads).toHaveLength(1)
  })
})

describe('A document', () => {
  it('says where it came from, what it is called and what its server says about it', async () => {
    target.answers.set('/from', redirectTo(`http://files.test:${target.port}/a/b%2Fc%0d.pdf?d=e`))
    const headers = { 'content-type': 'application/pdf; a=b', 'cache-control': 'private\r\ncache-control: max-age=3' }
    target.answers.set('/a/b%2Fc%0d.pdf?d=e', answerOf('%PDF-', { status: '203 Other', headers }))
    const { file, ...facts } = await fetchUrl(target.url('/from'))
    const url = `http://files.test:${target.port}/a/b%2Fc%0d.pdf?d=e`
    expect(facts).toEqual({ url, status: 203, cacheControl: 'private, max-age=3' })
    expect(file).toMatchObject({ contentType: 'application/pdf; a=b', name: 'c.pdf', baseUrl: url })
    expect((await file.spool.read(0, 9)).toString()).toBe('%PDF-')
    await file.spool.remove()
  })

  it.each([
    ['SSH-2.0-OpenSSH_9.0\r\n', 'The server of the document does not speak HTTP.'],
    ['HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n', 'The server of the document does not speak HTTP.'],
    ['HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut', 'The connection to the server of the document broke off.'],
  ])('of a server that sends %j has failed, and the caller is told why', async (bytes, message) => {
    target.answers.set('/', (socket) => socket.end(bytes))
    await expect(fetchUrl(target.url('/'))).rejects.toMatchObject({ kind: 'upstream_failed', message })
  })

  it('is asked for in the same words after a redirect to another host', async () => {
    target.answers.set('/from', redirectTo(`http://files.test:${target.port}/to`))
    const { file } = await fetchUrl(target.url('/from'))
    await file.spool.remove()
    const [before, after] = target.heads.map((head) => head.split('\r\n').slice(2).sort())
    expect(after).toEqual(before)
    expect(after?.join()).toContain('accept-encoding: gzip, br')
  })
})
