import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { type DocumentLab, startDocumentLab } from '../support/document-lab.js'
import { answerOf, pageOf, redirectTo } from '../support/document-target.js'
import { FORBIDDEN_URLS } from '../support/forbidden-urls.js'
import { type PublicEdge, startPublicEdge } from '../support/public-edge.js'
import { startUntouchedServer, type UntouchedServer } from '../support/untouched-server.js'
import { fieldPart } from '../support/upload-server.js'

let lab: DocumentLab
let edge: PublicEdge
let untouched: UntouchedServer

beforeAll(async () => {
  edge = await startPublicEdge()
  untouched = await startUntouchedServer()
  lab = await startDocumentLab({ sections: { server: { publicUrl: edge.url } }, alsoExempt: [new URL(edge.url).host] })
  edge.leadTo(lab.gateway.url)
})
beforeEach(() => {
  lab.target.reset()
})
afterAll(async () => {
  expect(untouched.accepted).toBe(0)
  await lab.close()
  await untouched.close()
  await edge.close()
})

const expectRefused = ({ status, text, body }: Awaited<ReturnType<DocumentLab['parse']>>): void => {
  expect([status, body.code]).toEqual([400, 1201])
  expect(body.message).toContain("'url'")
  expect(text).not.toMatch(/127\.|::1|10\.0|169\.254/)
}

describe.each(FORBIDDEN_URLS)('%s', (_name, urlFor) => {
  it('is not fetched, in whichever form it is asked for', async () => {
    const url = urlFor(untouched.port)
    expectRefused(await lab.parse(url))
    expectRefused(await lab.upload([fieldPart('url', url)]))
  })

  it.each(['301 Moved', '302 Found', '303 See Other', '307 Temporary', '308 Permanent'])(
    'is not fetched by a redirect: %s',
    async (status) => {
      // Headers are Latin-1: other letters arrive escaped.
      const location = urlFor(untouched.port).replaceAll(/[^\x21-\x7e]/g, encodeURIComponent)
      lab.target.answers.set('/start', redirectTo('/next'))
      lab.target.answers.set('/next', redirectTo(location, status))
      expectRefused(await lab.parse('/start'))
      expect(lab.target.heads).toHaveLength(2)
    },
  )
})

describe('a redirect', () => {
  it.each([
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'data:text/html,a',
    'http://user:canary@93.184.216.34/',
    'javascript:1',
  ])('to what is no page is not followed: %s', async (location) => {
    lab.target.answers.set('/start', redirectTo(location))
    const reply = await lab.parse('/start')
    expectRefused(reply)
    expect(reply.text).not.toContain('canary')
  })

  it('in a circle ends as a failure of its server', async () => {
    lab.target.answers.set('/circle', redirectTo('/circle'))
    const { status, body } = await lab.parse('/circle')
    expect([status, body.code]).toEqual([502, 5000])
    expect(lab.target.heads).toHaveLength(6)
  })
})

describe('the gateway itself', () => {
  it('is not read, under the name it has in public, nor behind a redirect', async () => {
    expectRefused(await lab.parse(`${edge.url}/health/live`))
    expectRefused(await lab.parse(edge.url))
    lab.target.answers.set('/start', redirectTo(`${edge.url}/health/live`))
    expectRefused(await lab.parse('/start'))
    // A read of its own pages could set something off there: it is not even asked.
    expect(edge.requests).toBe(0)
  })

  it('may share its host with others', async () => {
    // The edge hands on whatever stands behind five characters.
    const { status } = await lab.parse(new URL('/else/health/live', edge.url).href)
    expect(status).not.toBe(400)
  })
})

describe('a server that the operator exempts', () => {
  it('is exempt as it stands in the configuration, and by no other spelling', async () => {
    const { port } = lab.target
    lab.target.answers.set('/', answerOf(pageOf('Inside', 'A page of the operator’s own network.')))
    expect((await lab.parse('/')).status).toBe(200)
    expect((await lab.parse(`http://2130706433:${port}/`)).status).toBe(200)
    for (const host of ['localhost', '[::ffff:127.0.0.1]', '127.0.0.2']) {
      expectRefused(await lab.parse(`http://${host}:${port}/`))
    }
  })
})
