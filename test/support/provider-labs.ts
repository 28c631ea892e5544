import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { CallContext } from '../../src/providers/call-context.js'
import { newCall, targetOf } from './raw-upstream.js'

export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

type Answering = (response: ServerResponse, request: SeenRequest) => void

/** A server in the place of vidgen that answers what a test tells it to, in turn. */
export interface VidgenServer {
  readonly port: number
  readonly requests: readonly SeenRequest[]
  /** The next requests are answered by these, one each. */
  answerWith(...answers: readonly Answering[]): void
  close(): Promise<void>
}

export async function startVidgenServer(): Promise<VidgenServer> {
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    answerWith: (...next) => {
      answers = [...next]
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
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
export const vidgenContext = (port: number, changes: Partial<CallContext> = {}): CallContext => ({
  call: newCall('/vidgen/v1/videos/text2video'),
  channelId: 'first',
  target: targetOf(port),
  credentials: 'ak_demo|sk_demo',
  callersKey: false,
  upstreamModel: 'upstream-v1',
  options: {},
  deadlineAtMs: performance.now() + 20_000,
  ...changes,
})
