import type { ReadMetadata } from '../../src/providers/contract.js'
import { type DocumentTarget, pageOf, startDocumentTarget } from './document-stand-ins.js'
import {
  type RawAnswer,
  type RawRequest,
  sendRaw,
  startGateway,
  TEST_KEY,
  type TestGateway,
  type TestGatewayOptions,
} from './gateway.js'
import { openUpload, type SlowUpload } from './slow-uploads.js'
import { MULTIPART, multipartBytes, type RawPart } from './upload-server.js'

export const PARSE_PATH = '/v1/document/parse'

export interface DocumentMetadata extends ReadMetadata {
  readonly cached: number
}

export interface DocumentBody {
  readonly code: number
  readonly message: string
  readonly request_id?: string
  readonly data: { readonly metadata: DocumentMetadata; readonly html: string; readonly markdown: string }
}

export interface DocumentReply extends Omit<RawAnswer, 'body'> {
  readonly body: DocumentBody
}

/** A gateway that reads documents, and the web server they lie on. */
export interface DocumentLab {
  readonly gateway: TestGateway
  readonly target: DocumentTarget
  readonly send: (request: Omit<RawRequest, 'path'> & { readonly path?: string }) => Promise<DocumentReply>
  /** Asks for a URL, or for a path of the web server. */
  readonly parse: (url: string, more?: object, headers?: RawRequest['headers']) => Promise<DocumentReply>
  /** Asks for a path of the web server on a connection of its own, which the test may cut. */
  readonly ask: (path: string, requestId: string, more?: object) => Promise<SlowUpload>
  readonly upload: (parts: readonly RawPart[], headers?: RawRequest['headers']) => Promise<DocumentReply>
  readonly close: () => Promise<void>
}

export interface DocumentLabOptions extends Partial<TestGatewayOptions> {
  /** False leaves the web server as forbidden as everything else on this machine. */
  readonly exempt?: boolean
  /** Host and port of others. */
  readonly alsoExempt?: readonly string[]
}

export async function startDocumentLab(options: DocumentLabOptions = {}): Promise<DocumentLab> {
  const { exempt = true, alsoExempt = [], channels = [], sections = {}, ...rest } = options
  const target = await startDocumentTarget()
  const ssrf = { allow: [...(exempt ? [`127.0.0.1:${target.port}`] : []), ...alsoExempt] }
  const gateway = await startGateway({ channels, sections: { ssrf, ...sections }, ...rest })
  const send: DocumentLab['send'] = async (request) => {
    const answer = await sendRaw(gateway.url, { path: PARSE_PATH, ...request })
    return { ...answer, body: JSON.parse(answer.text) as DocumentBody }
  }
  return {
    gateway,
    target,
    send,
    parse: (url, more = {}, headers = {}) => {
      const absolute = url.startsWith('/') ? target.url(url) : url
      return send({ body: JSON.stringify({ url: absolute, ...more }), headers })
    },
    ask: async (path, requestId, more = {}) => {
      const body = Buffer.from(JSON.stringify({ url: target.url(path), ...more }))
      const headers = { 'content-type': 'application/json', 'x-request-id': requestId, connection: 'close' }
      const caller = await openUpload(gateway.url, body.length, headers, PARSE_PATH)
      await caller.send(body)
      return caller
    },
    upload: (parts, headers = {}) => send({ body: multipartBytes(parts), headers: { ...MULTIPART, ...headers } }),
    close: async () => {
      await gateway.close()
      await target.close()
    },
  }
}

/** A part named `file`; without a type its Content-Type line is left out. */
export const documentPart = (content: string | Buffer, filename: string, contentType?: string): RawPart => ({
  head:
    `Content-Disposition: form-data; name="file"; filename="${filename}"` +
    (contentType === undefined ? '' : `\r\nContent-Type: ${contentType}`),
  content,
})

export const NEWER = pageOf('Teapots', 'A teapot is a vessel in which tea is left to draw for a while.')

const OTHER_KEY = 'other-gateway-key'
/** The headers of a caller beside the usual one. */
export const OTHER_CALLER = { authorization: `Bearer ${OTHER_KEY}` }

/** A lab with two callers. */
export const startDocumentCacheLab = (): Promise<DocumentLab> =>
  startDocumentLab({
    keys: [
      { id: 'test', key: TEST_KEY },
      { id: 'other', key: OTHER_KEY },
    ],
  })

/** Whether a page was read before, as 0 or 1, and its title. */
export const seenOf = async (reply: ReturnType<DocumentLab['parse']>): Promise<[number, string]> => {
  const { metadata } = (await reply).body.data
  return [metadata.cached, metadata.title]
}
