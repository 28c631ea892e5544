import 'reflect-metadata'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { type IncomingHttpHeaders, type IncomingMessage, request, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { RecordedRequest } from '@multi-model-gateway/sandbox/server/recorded-request.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import type { INestApplication } from '@nestjs/common'
import { createApplication } from '../../src/app/create-app.js'
import { createLogging } from '../../src/observability/logger.js'
import { Readiness } from '../../src/observability/readiness.js'
import { parseConfig } from './config.js'

/** A chat request with one user message. */
export const chat = (
  text: string,
  more: object = {},
): { model: string; messages: { role: 'user'; content: string }[] } => ({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: text }],
  ...more,
})

export const chatText = (text: string, more: object = {}): string => JSON.stringify(chat(text, more))

export const CHAT_PATH = '/v1/chat/completions'
export const SPEECH_PATH = '/v1/audio/speech'

export const speechText = (input: string, more: object = {}): string =>
  JSON.stringify({ model: 'tts-1', input, voice: 'alloy', ...more })

/** What the simulator received last. Throws when it received nothing. */
export function lastRequest(simulator: Simulator): RecordedRequest {
  if (simulator.lastRequest === undefined) throw new Error('nothing reached the simulator')
  return simulator.lastRequest
}

/** The key that every test gateway accepts without limits, unless its configuration names others. */
export const TEST_KEY = 'test-gateway-key'

export interface TestGateway {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly application: INestApplication
  readonly server: Server
  /** Everything logged so far, as one text; for canary searches. */
  readonly logText: () => string
  /** Resolves with the log line of the request with this id, once it is written. */
  readonly logLine: (requestId: string) => Promise<Record<string, unknown>>
  readonly close: () => Promise<void>
}

export interface TestGatewayOptions {
  readonly channels: readonly object[]
  readonly keys?: readonly object[]
  /** Further sections of the configuration, as in gateway.yaml. */
  readonly sections?: object
  /** Where the embedded store lies, and what could not be stored; by default a place of its own for each gateway. */
  readonly dataDirectory?: string
}

/** The gateway as in production, on a free port, configured like an operator's file. */
export async function startGateway({
  channels,
  keys,
  sections = {},
  dataDirectory,
}: TestGatewayOptions): Promise<TestGateway> {
  const document = { auth: { keys: keys ?? [{ id: 'test', key: TEST_KEY }] }, channels, ...sections }
  const lines = new PassThrough()
  let text = ''
  lines.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    lines.emit('line')
  })
  // Nothing but the environment names it, and that is read while the application is made.
  const ownDirectory = join(tmpdir(), `gateway-without-data-${randomUUID()}`)
  process.env['GATEWAY_DATA'] = dataDirectory ?? process.env['GATEWAY_DATA'] ?? ownDirectory
  const application = await createApplication({
    config: parseConfig(JSON.stringify(document), {}),
    logging: createLogging('debug', lines),
    sandbox: false,
  })
  delete process.env['GATEWAY_DATA']
  await application.listen(0, '127.0.0.1')
  application.get(Readiness).markReady()
  const server = application.getHttpServer() as Server
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    application,
    server,
    logText: () => text,
    logLine: async (requestId) => {
      for (;;) {
        const line = text.split('\n').find((candidate) => candidate.includes(`"requestId":"${requestId}"`))
        if (line !== undefined) return JSON.parse(line) as Record<string, unknown>
        await once(lines, 'line')
      }
    },
    close: async () => {
      server.closeAllConnections()
      await application.close()
      await rm(ownDirectory, { recursive: true, force: true })
    },
  }
}

export interface RawRequest {
  readonly method?: string
  readonly path: string
  /** Laid over the key and the JSON content type; `undefined` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body?: string | Buffer
}

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly text: string
  /** False when the connection was cut before the answer's end. */
  readonly complete: boolean
}

/** Sends exactly these bytes and reads exactly what comes back, on a connection of its own. */
export async function sendRaw(url: string, raw: RawRequest): Promise<RawAnswer> {
  const response = await openRaw(url, raw)
  const chunks: Buffer[] = []
  const complete = await new Promise<boolean>((resolve) => {
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('error', () => undefined)
    response.on('close', () => {
      resolve(response.complete)
    })
  })
  const body = Buffer.concat(chunks)
  return { status: response.statusCode ?? 0, headers: response.headers, body, text: body.toString(), complete }
}

/** The answer as soon as its head is there; the body has not been read. Destroy it to leave. */
export function openRaw(
  url: string,
  { method = 'POST', path, headers = {}, body }: RawRequest,
): Promise<IncomingMessage> {
  const merged: NonNullable<RawRequest['headers']> = {
    authorization: `Bearer ${TEST_KEY}`,
    'content-type': 'application/json',
    ...headers,
  }
  const bytes = body === undefined ? undefined : Buffer.from(body)
  return new Promise((resolve, reject) => {
    const outgoing = request(new URL(path, url), { method, agent: false }, resolve)
    outgoing.on('error', reject)
    // A server may answer and close while the body is still being written: Node tells that of the socket, once the answer is there.
    outgoing.on('socket', (socket) => socket.on('error', () => undefined))
    for (const [name, value] of Object.entries(merged)) if (value !== undefined) outgoing.setHeader(name, value)
    if (bytes !== undefined && !outgoing.hasHeader('transfer-encoding'))
      outgoing.setHeader('content-length', bytes.length)
    outgoing.end(bytes)
  })
}

/** A connection to the gateway. Its errors are ignored: the test looks at what was received. */
export const connectTo = ({ url }: Pick<TestGateway, 'url'>, options: { allowHalfOpen?: boolean } = {}): Socket =>
  connect({ port: Number(new URL(url).port), host: '127.0.0.1', ...options }).on('error', () => undefined)

export interface ErrorBody {
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string | null
  }
}

export const errorOf = (answer: { readonly text: string }): ErrorBody['error'] =>
  (JSON.parse(answer.text) as ErrorBody).error

/** The `data` of each event of a stream, in order, whatever its line ends. */
export const eventsOf = (text: string): string[] =>
  text
    .split(/\r?\n\r?\n/)
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => frame.slice('data: '.length))

/** How many connections the gateway has with its clients. */
export const connectionsOf = ({ server }: Pick<TestGateway, 'server'>): Promise<number> =>
  new Promise((resolve, reject) => {
    server.getConnections((error, count) => {
      if (error === null) resolve(count)
      else reject(error)
    })
  })
