import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { startReaderSimulator } from '@multi-model-gateway/sandbox/reader/reader.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { SpooledFile } from '../../src/core/spooled-file.js'
import type { AttemptContext, ReadRequest, UpstreamVideoTask, VideoKind } from '../../src/providers/contract.js'
import { ImggenImageProvider } from '../../src/providers/imggen/imggen-image.js'
import { ReaderDocumentProvider } from '../../src/providers/reader/reader-document.js'
import { VidgenTokens, VidgenVideoProvider } from '../../src/providers/vidgen/vidgen-video.js'
import { UpstreamClient } from '../../src/upstream/upstream-client.js'
import { listenOnLoopback } from './loopback-server.js'
import { attemptOf, newCall, targetOf } from './raw-upstream.js'

interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

type Answering = (response: ServerResponse, request: SeenRequest) => void

/** A server in the place of vidgen that answers what a test tells it to, in turn. */
interface VidgenServer {
  readonly port: number
  readonly requests: readonly SeenRequest[]
  /** The next requests are answered by these, one each. */
  answerWith(...answers: readonly Answering[]): void
  close(): Promise<void>
}

async function startVidgenServer(): Promise<VidgenServer> {
  const requests: SeenRequest[] = []
  let answers: Answering[] = []
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming
      const seen = { method, path: url, headers, body: Buffer.concat(chunks) }
      requests.push(seen)
      const answer = answers.shift() ?? json(500, '{"code":5000,"message":"the test expected no such request"}')
      answer(response, seen)
    })
  })
  const { port, close } = await listenOnLoopback(server)
  return {
    port,
    requests,
    answerWith: (...next) => {
      answers = [...next]
    },
    close,
  }
}

export const json =
  (status: number, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Answering =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }

/** The envelope around a task object, or around nothing. */
export const enveloped = (data: string, code: number | string = 0, message = 'SUCCEED'): string =>
  `{"code":${code},"message":${JSON.stringify(message)},"request_id":"CjMk-1","data":${data}}`

export const TASK =
  '{"task_id":"831200000000000001","task_info":{"external_task_id":"order-77"},"task_status":"submitted","created_at":1750000000000,"updated_at":1750000000123}'

/** One attempt on a channel `first` with a signing key, on its way to this port. */
const vidgenContext = (port: number, changes: Partial<AttemptContext> = {}): AttemptContext => ({
  ...attemptOf(newCall('/vidgen/v1/videos/text2video')),
  channelId: 'first',
  target: targetOf(port),
  credentials: 'ak_demo|sk_demo',
  callersKey: false,
  upstreamModel: 'upstream-v1',
  modelMap: {},
  options: {},
  deadlineAtMs: performance.now() + 60_000,
  ...changes,
})

export const IMAGE_ID = '1750000000000123'
export const SECRET = 'secret-canary'
export const IMAGE_TASK = `{"id":"${IMAGE_ID}","status":"SUCCESS","progress":"100%","properties":{"finalPrompt":"a kite --v 6"},"n":9223372036854775807}`

/** The provider in front of a server that a test answers for. */
export interface ImggenLab {
  readonly server: VidgenServer
  readonly client: UpstreamClient
  readonly provider: ImggenImageProvider
  /** One attempt on a channel of its own, on its way to the server. */
  context(changes?: Partial<AttemptContext>): AttemptContext
  /** Since the last time that this was asked. */
  newRequests(): readonly SeenRequest[]
  close(): Promise<void>
}

export async function startImggenLab(): Promise<ImggenLab> {
  const server = await startVidgenServer()
  const client = new UpstreamClient()
  let seen = 0
  return {
    server,
    client,
    provider: new ImggenImageProvider(client),
    context: (changes = {}) => ({
      ...attemptOf(newCall('/imggen/task/1/fetch')),
      channelId: 'first',
      target: targetOf(server.port),
      credentials: SECRET,
      callersKey: false,
      upstreamModel: '',
      modelMap: {},
      options: {},
      deadlineAtMs: performance.now() + 60_000,
      ...changes,
    }),
    newRequests: () => {
      const requests = server.requests.slice(seen)
      seen = server.requests.length
      return requests
    },
    close: async () => {
      await client.onApplicationShutdown()
      await server.close()
    },
  }
}

export const READER_KEY = 'reader-key'
export const READER_DIALECTS = ['gateway', 'firecrawl', 'jina'] as const

/** The provider in front of the simulator. */
export interface ReaderLab {
  readonly simulator: Simulator
  readonly provider: ReaderDocumentProvider
  context(dialect: string, changes?: Partial<AttemptContext>): AttemptContext
  close(): Promise<void>
}

export async function startReaderLab(): Promise<ReaderLab> {
  const simulator = await startReaderSimulator({ apiKey: READER_KEY })
  const client = new UpstreamClient()
  return {
    simulator,
    provider: new ReaderDocumentProvider(client),
    context: (dialect, changes = {}) => ({
      ...attemptOf(newCall('/v1/document/parse')),
      channelId: 'first',
      target: targetOf(simulator.port),
      credentials: READER_KEY,
      callersKey: false,
      upstreamModel: '',
      modelMap: {},
      options: { dialect },
      deadlineAtMs: performance.now() + 60_000,
      ...changes,
    }),
    close: async () => {
      await client.onApplicationShutdown()
      await simulator.close()
    },
  }
}

export const urlRequest = (url: string, changes: Partial<ReadRequest> = {}): ReadRequest => ({
  source: { kind: 'url', url },
  timeoutMs: 20_000,
  isFresh: false,
  responseBytes: 10_000_000,
  ...changes,
})

/** The caller must remove the spool. */
export async function fileRequest(bytes: Buffer, name = 'report.pdf', contentType = 'application/pdf') {
  const spool = new SpooledFile()
  await spool.append(bytes)
  await spool.finish()
  const request: ReadRequest = {
    source: { kind: 'file', spool, name, contentType },
    timeoutMs: 20_000,
    isFresh: false,
    responseBytes: 10_000_000,
  }
  return { request, spool }
}

export const START_MS = 1_750_000_000_000
export const TASK_ID = '831200000000000001'
export const CREATE_BODY = Buffer.from(
  '{ "model_name":"upstream-v1", "prompt" : "ein Schiff \\u00fc", "cfg_scale":0.50, "x":12345678901234567890 }',
)

/** The provider in front of a server that a test answers for. */
export interface VidgenLab {
  readonly server: VidgenServer
  /** By which tokens are signed. */
  readonly clock: { ms: number }
  create(changes?: Partial<AttemptContext>, kind?: VideoKind): Promise<UpstreamVideoTask>
  read(id?: string, changes?: Partial<AttemptContext>): Promise<UpstreamVideoTask | undefined>
  /** The requests that some work makes. */
  requestsOf(work: () => Promise<unknown>): Promise<readonly SeenRequest[]>
  /** Forgets tokens and sets the clock back. */
  reset(): void
  close(): Promise<void>
}

export async function startVidgenLab(): Promise<VidgenLab> {
  const server = await startVidgenServer()
  const client = new UpstreamClient()
  const clock = { ms: START_MS }
  const freshProvider = (): VidgenVideoProvider => new VidgenVideoProvider(client, new VidgenTokens(() => clock.ms))
  let provider = freshProvider()
  return {
    server,
    clock,
    create: (changes, kind = 'text2video') => provider.create(kind, [CREATE_BODY], vidgenContext(server.port, changes)),
    read: (id = TASK_ID, changes = {}) => provider.read('text2video', id, vidgenContext(server.port, changes)),
    requestsOf: async (work) => {
      const before = server.requests.length
      await work()
      return server.requests.slice(before)
    },
    reset: () => {
      clock.ms = START_MS
      provider = freshProvider()
    },
    close: async () => {
      await client.onApplicationShutdown()
      await server.close()
    },
  }
}
