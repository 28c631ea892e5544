import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { TEST_KEY } from './gateway.js'

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
    for (const [name, value] of Object.entries(merged)) if (value !== undefined) outgoing.setHeader(name, value)
    if (bytes !== undefined && !outgoing.hasHeader('transfer-encoding'))
      outgoing.setHeader('content-length', bytes.length)
    outgoing.end(bytes)
  })
}

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
