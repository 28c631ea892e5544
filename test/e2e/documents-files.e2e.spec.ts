import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { type DocumentLab, documentPart, startDocumentLab } from '../support/document-lab.js'
import { answerOf, PAGE } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'
import { fieldPart } from '../support/upload-server.js'

let lab: DocumentLab

beforeAll(async () => {
  lab = await startDocumentLab()
})
afterEach(async () => {
  lab.target.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

describe('the result of a file', () => {
  const expected = (contentType: string) => ({
    metadata: { url: '', title: 'Kettles', statusCode: 200, contentType, cached: 0 },
    markdown: expect.stringMatching(/^# Kettles\n\nA kettle is a vessel/),
  })

  it.each([
    ['text/html; charset=utf-8', 'text/html; charset=utf-8'],
    ['application/octet-stream', 'application/octet-stream'],
    [undefined, 'text/html'],
  ])('in a form shows the type of its part as it was written: %s', async (type, shown) => {
    const { status, body } = await lab.upload([documentPart(PAGE, 'a.html', type), fieldPart('no_cache', 'true')])
    expect([status, body.code]).toEqual([200, 0])
    expect(body.data).toMatchObject(expected(shown))
  })

  it('may come behind the fields of its form', async () => {
    const parts = [fieldPart('timeout', '20'), fieldPart('no_cache', '1'), documentPart(PAGE, 'a.html', 'text/html')]
    expect((await lab.upload(parts)).body.data).toMatchObject(expected('text/html'))
  })

  it.each(['text/html', 'application/xhtml+xml', 'text/html; charset=utf-8', 'application/octet-stream', 'Text/HTML'])(
    'that is the body itself is read as what it is: %s',
    async (type) => {
      const path = '/v1/document/parse?timeout=20&no_cache=true'
      const { status, body } = await lab.send({ path, body: PAGE, headers: { 'content-type': type } })
      expect(status).toBe(200)
      expect(body.data).toMatchObject(expected(type))
    },
  )

  it('is what its bytes say, whatever is claimed about it', async () => {
    const { body } = await lab.send({ body: PAGE, headers: { 'content-type': 'application/pdf' } })
    expect(body.data.markdown).toContain('# Kettles')
  })

  it('may come without a length, and after asking whether it may', async () => {
    const headers = { 'content-type': 'text/html', 'transfer-encoding': 'chunked', expect: '100-continue' }
    const { body } = await lab.send({ path: '/v1/document/parse?no_cache=1', body: PAGE, headers })
    expect(body.data.markdown).toContain('# Kettles')
  })
})

describe('a URL in a form', () => {
  it('means the same as one in JSON', async () => {
    lab.target.answers.set('/form', answerOf(PAGE))
    const { body } = await lab.upload([fieldPart('url', lab.target.url('/form'))])
    expect(body.data.metadata).toMatchObject({ url: lab.target.url('/form'), title: 'Kettles' })
  })
})
