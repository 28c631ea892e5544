import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { ErrorKind } from '../../src/core/errors.js'
import { GatewayError } from '../../src/core/gateway-error.js'
import { renderError } from '../../src/dialects/error-format.js'
import { CHAT_PATH } from '../support/chat-bodies.js'
import { freePort } from '../support/free-port.js'
import { sendRaw } from '../support/raw-http.js'
import { startParts } from '../support/start-parts.js'
import { type ConfigurationChange, startBalancer } from './balancer.js'
import { CLUSTER_START_MS } from './cluster.js'

/** Whoever puts this id into JSON as it is breaks it; the gateway takes it. */
const REQUEST_ID = 'a"b\\c'

/** One path of each dialect; the last ones look like another dialect and are not. */
const PATHS = [
  CHAT_PATH,
  '/v1/messages',
  '/v1/messages/count_tokens?beta=true',
  '/vidgen/v1/videos/text2video',
  '/v1/document/parse',
  '/imggen/mj/submit/imagine',
  '/v1/messagesandmore',
  '/imggenuine',
]

interface Case {
  readonly what: string
  readonly kind: ErrorKind
  /** The balancer's own word, in the dialect that has one. */
  readonly code: string
  readonly before: keyof Urls
}

/** Ready, and then of no use. */
async function startReplica(serve: RequestListener): Promise<{ readonly address: string; close(): Promise<unknown> }> {
  const server = createServer((request, response) => {
    if (request.url === '/health/ready') response.end('{"status":"ready"}')
    else serve(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}

/** By what is behind a balancer each: nobody, gateways that break off, and silent ones. */
interface Urls {
  readonly absent: string
  readonly dying: string
  readonly silent: string
}

/** A second instead of ten minutes of patience. */
const impatient = (configuration: string): string => configuration.replace('timeout server 600s', 'timeout server 1s')

const startAll = (): Promise<{ readonly urls: Urls; close(): Promise<void> }> =>
  startParts(async (closedAtLast) => {
    const before = async (address: string, change?: ConfigurationChange): Promise<string> =>
      closedAtLast(await startBalancer([address, address], change)).url
    const dying = closedAtLast(await startReplica((request) => request.socket.destroy()))
    const silent = closedAtLast(await startReplica(() => undefined))
    const urls = {
      absent: await before(`127.0.0.1:${await freePort()}`),
      dying: await before(dying.address),
      silent: await before(silent.address, impatient),
    }
    return { urls }
  })

let balancers: Awaited<ReturnType<typeof startAll>>
beforeAll(async () => {
  balancers = await startAll()
}, CLUSTER_START_MS)
afterAll(() => balancers.close())

const CASES: readonly Case[] = [
  { what: 'no gateway is there', kind: 'overloaded', code: 'no_gateway', before: 'absent' },
  { what: 'the gateway breaks off', kind: 'upstream_failed', code: 'gateway_lost', before: 'dying' },
  { what: 'the gateway is silent', kind: 'upstream_timeout', code: 'gateway_timeout', before: 'silent' },
]

describe.each(CASES)('what the balancer says itself when $what', ({ kind, code, before }) => {
  it.each(PATHS)('is what the gateway would say on %s', async (path) => {
    const { status, headers, text } = await sendRaw(balancers.urls[before], {
      path,
      headers: { 'x-request-id': REQUEST_ID },
      body: '{}',
    })
    const said = JSON.parse(text) as { readonly message?: string; readonly error?: { readonly message: string } }
    const message = said.error?.message ?? said.message ?? ''
    expect(message).toMatch(/^(?:No|The) gateway /)
    const pathname = path.split('?')[0] ?? ''
    const own = renderError(new GatewayError(kind, message, { code }), pathname, REQUEST_ID)
    expect([status, said]).toEqual([own.status, JSON.parse(own.body)])
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-request-id': REQUEST_ID })
    expect(headers['request-id']).toBe(own.headers['request-id'])
    expect(headers['retry-after']).toBe(kind === 'overloaded' ? '1' : undefined)
    expect(headers['x-should-retry']).toBe(kind === 'overloaded' ? undefined : 'false')
  })
})

describe('the official SDK of the messages family', () => {
  it('reads the type, the text and the id of such an answer', async () => {
    const client = new Anthropic({ apiKey: 'any', baseURL: balancers.urls.absent, maxRetries: 0 })
    const call = client.messages.create({ model: 'claude', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] })
    const failure: unknown = await call.catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Anthropic.APIError)
    const { status, error, requestID } = failure as InstanceType<typeof Anthropic.APIError>
    expect([status, error]).toMatchObject([529, { type: 'error', error: { type: 'overloaded_error' } }])
    expect(requestID).toMatch(/^req_/)
  })
})
