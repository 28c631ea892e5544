import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { renderError } from '../../src/common/errors/envelope-choice.js'
import type { ErrorKind } from '../../src/common/errors/error-kinds.js'
import { GatewayError } from '../../src/common/errors/gateway-error.js'
import { CHAT_PATH } from '../support/chat-bodies.js'
import { freePort } from '../support/free-port.js'
import { sendRaw } from '../support/raw-http.js'
import { startBalancer } from './balancer.js'
import { type Daemon, startDaemon, until } from './daemon.js'

const CONFIGURATION = fileURLToPath(new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url))

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
  readonly url: () => string
}

/** Ready, and then of no use. */
async function startReplica(serve: RequestListener): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.url === '/health/ready') response.end('{"status":"ready"}')
    else serve(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const addressOf = (server: Server): string => `127.0.0.1:${(server.address() as AddressInfo).port}`

/** The repository's file, with a second instead of ten minutes of patience. */
async function startImpatient(folder: string, replica: string): Promise<{ url: string; daemon: Daemon }> {
  const text = await readFile(CONFIGURATION, 'utf8')
  const file = join(folder, 'haproxy.cfg')
  await writeFile(file, text.replace('timeout server 600s', 'timeout server 1s'))
  const [bind, operators, metrics] = [await freePort(), await freePort(), await freePort()]
  const daemon = await startDaemon({
    program: 'haproxy',
    parameters: ['-db', '-f', file],
    variables: {
      GATEWAY_1: replica,
      GATEWAY_2: replica,
      HAPROXY_BIND: `127.0.0.1:${bind}`,
      HAPROXY_OPERATORS: `127.0.0.1:${operators}`,
      HAPROXY_METRICS: `127.0.0.1:${metrics}`,
      HAPROXY_SOCKET: join(folder, 'haproxy.sock'),
    },
    debianPackage: 'haproxy',
  })
  const url = `http://127.0.0.1:${bind}`
  await until(
    async () => (await fetch(`${url}/health/ready`).catch(() => undefined))?.ok === true || undefined,
    () => `haproxy does not serve:\n${daemon.output()}`,
  )
  return { url, daemon }
}

const urls = { absent: '', dying: '', silent: '' }
const endings: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-balancer-words-'))
  endings.push(() => rm(folder, { recursive: true }))
  const dying = await startReplica((request) => request.socket.destroy())
  const silent = await startReplica(() => undefined)
  for (const server of [dying, silent])
    endings.unshift(() => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    })
  const nobody = `127.0.0.1:${await freePort()}`
  const beforeNobody = await startBalancer([nobody, nobody])
  endings.unshift(() => beforeNobody.close())
  const beforeDying = await startBalancer([addressOf(dying), addressOf(dying)])
  endings.unshift(() => beforeDying.close())
  const beforeSilent = await startImpatient(folder, addressOf(silent))
  endings.unshift(() => beforeSilent.daemon.end())
  Object.assign(urls, { absent: beforeNobody.url, dying: beforeDying.url, silent: beforeSilent.url })
})
afterAll(async () => {
  for (const end of endings) await end()
})

const CASES: readonly Case[] = [
  { what: 'no gateway is there', kind: 'overloaded', code: 'no_gateway', url: () => urls.absent },
  { what: 'the gateway breaks off', kind: 'upstream_failed', code: 'gateway_lost', url: () => urls.dying },
  { what: 'the gateway is silent', kind: 'upstream_timeout', code: 'gateway_timeout', url: () => urls.silent },
]

describe.each(CASES)('what the balancer says itself when $what', ({ kind, code, url }) => {
  it.each(PATHS)('is what the gateway would say on %s', async (path) => {
    const { status, headers, text } = await sendRaw(url(), {
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
    const client = new Anthropic({ apiKey: 'any', baseURL: urls.absent, maxRetries: 0 })
    const call = client.messages.create({ model: 'claude', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] })
    const failure: unknown = await call.catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Anthropic.APIError)
    const { status, error, requestID } = failure as InstanceType<typeof Anthropic.APIError>
    expect([status, error]).toMatchObject([529, { type: 'error', error: { type: 'overloaded_error' } }])
    expect(requestID).toMatch(/^req_/)
  })
})
