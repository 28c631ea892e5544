import { once } from 'node:events'
import type { OpenAPIObject } from '@nestjs/swagger'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { type DocumentLab, documentPart, PARSE_PATH, startDocumentLab } from '../support/document-lab.js'
import { PAGE } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'
import { openUpload } from '../support/slow-uploads.js'
import { fieldPart, MULTIPART, multipartBytes } from '../support/upload-server.js'

const MEGABYTE = 1_000_000
const PIECE_BYTES = 65_536

let lab: DocumentLab

beforeAll(async () => {
  lab = await startDocumentLab()
})
afterEach(() => eventually(() => spoolsLeft().length === 0))
afterAll(() => lab.close())

const FORM = multipartBytes([documentPart(PAGE.padEnd(8 * MEGABYTE, ' '), 'a.html'), fieldPart('timeout', '20')])
const BODY = Buffer.from(PAGE.padEnd(8 * MEGABYTE, ' '))
const HTML = { 'content-type': 'text/html' }

describe.each([
  ['in a form', FORM, {}],
  ['as the body', BODY, HTML],
] as const)('a file %s', (_name, bytes, headers) => {
  it.each([20_000, 4 * MEGABYTE])('whose caller leaves after %i bytes leaves nothing behind', async (sentBytes) => {
    const requestId = `documents-upload-${sentBytes}-${bytes.length}`
    const target = await openUpload(
      lab.gateway.url,
      bytes.length,
      { ...headers, 'x-request-id': requestId },
      PARSE_PATH,
    )
    for (let at = 0; at < sentBytes; at += PIECE_BYTES) await target.send(bytes.subarray(at, at + PIECE_BYTES))
    if (sentBytes > MEGABYTE && process.platform === 'linux') await eventually(() => spoolsLeft().length === 1)
    target.socket.destroy()
    expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499, attempts: 0 })
  })

  it('that arrives in pieces of a few bytes arrives whole', async () => {
    const small = bytes === FORM ? multipartBytes([documentPart(PAGE, 'a.html')]) : Buffer.from(PAGE)
    const target = await openUpload(lab.gateway.url, small.length, { ...headers, connection: 'close' }, PARSE_PATH)
    target.socket.setNoDelay()
    for (let at = 0; at < small.length; at += 13) await target.send(small.subarray(at, at + 13))
    await target.closed
    expect(target.answer()).toMatch(/^HTTP\/1\.1 200 [^]*"markdown":"# Kettles/)
  })

  it('that is asked for permission first is sent when it gets that', async () => {
    const asking = { ...headers, expect: '100-continue', connection: 'close' }
    const target = await openUpload(lab.gateway.url, bytes.length, asking, PARSE_PATH)
    await once(target.socket, 'data')
    expect(target.answer()).toMatch(/^HTTP\/1\.1 100 /)
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) await target.send(bytes.subarray(at, at + PIECE_BYTES))
    await target.closed
    expect(target.answer()).toMatch(/HTTP\/1\.1 200 [^]*"markdown":"# Kettles/)
  })

  it('that needs not be read, because that was done before, leaves nothing behind either', async () => {
    const type = bytes === FORM ? MULTIPART : HTML
    await lab.send({ body: bytes, headers: type })
    expect((await lab.send({ body: bytes, headers: type })).body.data.metadata.cached).toBe(1)
  })
})

describe('the documentation', () => {
  it('shows the three forms of the request, and the result of the specification', async () => {
    const document = (await (await fetch(`${lab.gateway.url}/docs/openapi.json`)).json()) as OpenAPIObject
    const operation = document.paths[PARSE_PATH]?.post
    const { requestBody } = operation as { requestBody: { content: Record<string, { schema: object }> } }
    expect(requestBody.content['application/json']?.schema).toEqual({ $ref: '#/components/schemas/DocumentUrlDto' })
    expect(requestBody.content['multipart/form-data']?.schema).toEqual({ $ref: '#/components/schemas/DocumentFormDto' })
    expect(requestBody.content['application/pdf']?.schema).toEqual({ type: 'string', format: 'binary' })
    expect(Object.keys(operation?.responses ?? {})).toEqual([
      '200',
      '400',
      '401',
      '408',
      '413',
      '415',
      '422',
      '429',
      '500',
      '502',
      '503',
      '504',
    ])
    expect(document.components?.schemas?.['DocumentUrlDto']).toMatchObject({ required: ['url'] })
  })
})
