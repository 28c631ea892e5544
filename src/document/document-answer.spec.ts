import { describe, expect, it } from '@jest/globals'
import { type ByteSource, collect } from '../core/byte-source.js'
import { GatewayError } from '../core/gateway-error.js'
import type { ReadDocument } from '../providers/contract.js'
import { documentAnswer } from './document-answer.js'

const metadata = {
  ...{ url: '', title: 'Kettles “é”', description: '', keywords: '', siteName: '', favicon: '' },
  ...{ statusCode: 200, contentType: 'text/plain' },
}

const documentWith = (markdown: string): ReadDocument => ({
  metadata,
  content: Buffer.from(`"html":"","markdown":${JSON.stringify(markdown)}`),
  pages: 1,
  isCached: false,
})

async function bytesOf(body: Buffer | ByteSource): Promise<Buffer> {
  return Buffer.isBuffer(body) ? body : await collect(body, Infinity, () => new GatewayError('internal', 'never'))
}

describe('The answer with a document', () => {
  it.each([
    ['short', 'a'],
    ['long', 'é"\n'.repeat(100_000)],
  ])('that is %s is the whole of it, as long as it says', async (_name, markdown) => {
    const { body, headers } = documentAnswer(documentWith(markdown), true)
    const bytes = await bytesOf(body)
    expect(JSON.parse(bytes.toString())).toEqual({
      code: 0,
      message: 'success',
      data: { metadata: { ...metadata, cached: 1 }, html: '', markdown },
    })
    expect(Number(headers['content-length'] ?? bytes.length)).toBe(bytes.length)
  })

  it('that is long holds no copy of the document, however many read it, and waits for a reader who pauses', async () => {
    const document = documentWith('x'.repeat(1_000_000))
    const body = documentAnswer(document, true).body as ByteSource
    const pieces: Buffer[] = []
    await new Promise<void>((resolve, reject) => {
      body.start({
        data: (chunk) => {
          pieces.push(chunk)
          body.pause()
          // Two turns later nothing else has come.
          setImmediate(() => setImmediate(check, pieces.length))
        },
        end: resolve,
        fail: reject,
      })
      const check = (count: number): void => {
        expect(pieces).toHaveLength(count)
        body.resume()
      }
    })
    expect(pieces[1]).toBe(document.content)
  })

  it('that nobody wants any more ends without another piece', async () => {
    const body = documentAnswer(documentWith('x'.repeat(1_000_000)), false).body as ByteSource
    const seen: string[] = []
    body.start({ data: () => seen.push('data'), end: () => seen.push('end'), fail: () => seen.push('fail') })
    body.cancel()
    body.resume()
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(seen).toEqual(['data'])
  })
})
