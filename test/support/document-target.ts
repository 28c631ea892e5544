import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { startRawUpstream } from './raw-upstream.js'

export type TargetAnswer = string | Buffer | ((socket: Socket, head: string) => void)

/** A web server that answers each path with the bytes a test gives it; 404 without a body elsewhere. */
export interface DocumentTarget {
  readonly port: number
  /** By path and query. */
  readonly answers: Map<string, TargetAnswer>
  /** The heads of all requests, in order. */
  readonly heads: string[]
  readonly sockets: ReadonlySet<Socket>
  /** Connections accepted so far. */
  readonly accepted: number
  readonly url: (path: string) => string
  readonly reset: () => void
  readonly close: () => Promise<void>
}

export async function startDocumentTarget(): Promise<DocumentTarget> {
  const answers = new Map<string, TargetAnswer>()
  const heads: string[] = []
  const upstream = await startRawUpstream((socket, head) => {
    heads.push(head)
    const answer = answers.get(head.split(' ')[1] ?? '') ?? answerOf('', { status: '404 Not Found' })
    if (typeof answer === 'function') answer(socket, head)
    else socket.write(answer)
  })
  return {
    port: upstream.port,
    answers,
    heads,
    sockets: upstream.sockets,
    get accepted() {
      return upstream.accepted
    },
    url: (path) => `http://127.0.0.1:${upstream.port}${path}`,
    reset: () => {
      answers.clear()
      heads.length = 0
    },
    close: () => upstream.close(),
  }
}

export interface AnswerFacts {
  /** Code and reason. */
  readonly status?: string
  /** Laid over Content-Type `text/html; charset=utf-8` and the length; `undefined` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
}

/** The bytes of a whole answer. */
export function answerOf(body: string | Buffer, { status = '200 OK', headers = {} }: AnswerFacts = {}): Buffer {
  const bytes = Buffer.from(body)
  const all: Record<string, string | undefined> = {
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(bytes.length),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => (value === undefined ? '' : `${name}: ${value}\r\n`))
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n`), bytes])
}

export const redirectTo = (location: string, status = '302 Found'): Buffer =>
  answerOf('', { status, headers: { location } })

/** A page with a title and one paragraph, long enough to be its main content. */
export const pageOf = (title: string, text: string): string =>
  `<!doctype html><html><head><title>${title}</title></head><body><article><h1>${title}</h1><p>${text}</p></article></body></html>`

export const PAGE = pageOf('Kettles', 'A kettle is a vessel in which water is brought to the boil.')

/** The same, long enough that its parts are sent apart. */
export const GZIPPED_PAGE = gzipSync(Buffer.from(PAGE.padEnd(50_000, 'x')))

/** The head of an answer with a page, but for how its body ends. */
export const PAGE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n'

/** An answer whose body is said to be encoded so. */
export const encodedAs = (encoding: string, body: Buffer): Buffer =>
  answerOf(body, { headers: { 'content-encoding': encoding } })
