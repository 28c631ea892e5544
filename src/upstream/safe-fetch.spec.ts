import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { GENEROUS_TIMEOUTS, newCall, startRawUpstream } from '../../test/support/raw-upstream.js'
import { startUntouchedServer, type UntouchedServer } from '../../test/support/untouched-server.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { GuardedClient } from './safe-fetch.js'
import { AddressRefused, type ResolveHost } from './ssrf-guard.js'

/** Listens at every address of this machine: whoever gets through is counted. */
let target: UntouchedServer
let resolve: ResolveHost
let clients: GuardedClient[]

beforeEach(async () => {
  target = await startUntouchedServer()
  resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  clients = []
})
afterEach(async () => {
  await Promise.all(clients.map((client) => client.onApplicationShutdown()))
  await target.close()
})

function clientAllowing(...allow: string[]): GuardedClient {
  const store = new ConfigStore(parseConfig(JSON.stringify({ ssrf: { allow } }), {}))
  const client = new GuardedClient(store, (host) => resolve(host))
  clients.push(client)
  return client
}

const request = () => ({ call: newCall(), deadlineAtMs: performance.now() + 20_000, timeouts: GENEROUS_TIMEOUTS })
const VERBS = {
  get: (client: GuardedClient, url: string) => client.get(url, request()),
  post: (client: GuardedClient, url: string) => client.post(url, { ...request(), body: Buffer.from('{}') }),
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

describe('A private address', () => {
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
