import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { NEWER, OTHER_CALLER, seenOf, startDocumentCacheLab } from '../support/document-cache-lab.js'
import { type DocumentLab, documentPart, startDocumentLab } from '../support/document-lab.js'
import { type AnswerFacts, answerOf, PAGE } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'

let lab: DocumentLab

beforeAll(async () => {
  lab = await startDocumentCacheLab()
})
afterEach(async () => {
  lab.target.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

let pages = 0
/** A page nobody has asked for before. */
function newPage(body = PAGE, facts: AnswerFacts = {}): string {
  const path = `/page-${++pages}`
  lab.target.answers.set(path, answerOf(body, facts))
  return path
}

describe('a page that was read before', () => {
  it('is given again, to everybody, without asking its server', async () => {
    const path = newPage()
    const first = await lab.parse(path)
    const second = await lab.parse(path)
    expect(first.body.data.metadata.cached).toBe(0)
    expect(second.body.data.metadata.cached).toBe(1)
    expect(second.text).toBe(first.text.replace('"cached":0', '"cached":1'))
    expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([1, 'Kettles'])
    expect(lab.target.heads).toHaveLength(1)
  })

  it('is the same page under any spelling of its URL, and whatever place on it is meant', async () => {
    const path = newPage()
    const url = lab.target.url(path)
    await lab.parse(path)
    for (const same of [
      `${url}#part`,
      url.replace('http', 'HTTP'),
      ` ${url}`,
      `${url}#`,
      url.replace('127.0.0.1', '127.1'),
    ]) {
      expect(await seenOf(lab.parse(same))).toEqual([1, 'Kettles'])
    }
    for (const other of [`${url}#/route`, `${url}#!route`]) {
      expect(await seenOf(lab.parse(other))).toEqual([0, 'Kettles'])
      expect(await seenOf(lab.parse(other))).toEqual([1, 'Kettles'])
    }
    expect(lab.target.heads).toHaveLength(3)
  })

  it.each([{ no_cache: true }, { 'cache-control': 'no-cache' }, { 'cache-control': 'max-age=0, No-Cache' }])(
    'is read anew for whoever asks for that, and given to the others afterwards: %j',
    async (wish) => {
      const path = newPage()
      await lab.parse(path)
      lab.target.answers.set(path, answerOf(NEWER))
      expect(await seenOf(lab.parse(path))).toEqual([1, 'Kettles'])
      const anew = 'no_cache' in wish ? lab.parse(path, wish) : lab.parse(path, {}, wish)
      expect(await seenOf(anew)).toEqual([0, 'Teapots'])
      expect(await seenOf(lab.parse(path))).toEqual([1, 'Teapots'])
    },
  )

  it('is not given again once its server said that it must not be', async () => {
    const path = newPage()
    await lab.parse(path)
    lab.target.answers.set(path, answerOf(NEWER, { headers: { 'cache-control': 'no-store' } }))
    expect(await seenOf(lab.parse(path, { no_cache: true }))).toEqual([0, 'Teapots'])
    expect(await seenOf(lab.parse(path))).toEqual([0, 'Teapots'])
  })

  it('is given to nobody else when its server calls it private', async () => {
    const path = newPage(PAGE, { headers: { 'cache-control': 'Private="x", max-age=60' } })
    expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
    expect(await seenOf(lab.parse(path))).toEqual([1, 'Kettles'])
    expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([0, 'Kettles'])
    expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([1, 'Kettles'])
  })

  it.each<readonly [string, AnswerFacts]>([
    ['of status 404', { status: '404 Not Found' }],
    ['of status 500', { status: '500 Oops' }],
    ['of status 203', { status: '203 Other' }],
    ['that must not be stored', { headers: { 'cache-control': 'max-age=60,  NO-STORE' } }],
    ['that must be checked each time', { headers: { 'cache-control': 'No-Cache, max-age=60' } }],
    ['that is stale at once', { headers: { 'cache-control': 'public, max-age=0' } }],
    ['that is stale at once for caches of many', { headers: { 'cache-control': 'max-age=60, s-maxage="0"' } }],
  ])('is read anew when it was one %s', async (_name, facts) => {
    const path = newPage(PAGE, facts)
    await lab.parse(path)
    expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
    expect(lab.target.heads).toHaveLength(2)
  })

  it.each(['max-age=60', 'max-age=0, s-maxage=60', 'max-age=09', 'max-age', 'no-transform'])(
    'is given again where its server says %s',
    async (cacheControl) => {
      const path = newPage(PAGE, { headers: { 'cache-control': cacheControl } })
      await lab.parse(path)
      expect(await seenOf(lab.parse(path))).toEqual([1, 'Kettles'])
    },
  )

  it('is read anew when that failed', async () => {
    const path = newPage(PAGE, { headers: { 'content-encoding': 'gzip' } })
    expect((await lab.parse(path)).status).toBe(502)
    lab.target.answers.set(path, answerOf(PAGE))
    expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
  })
})

describe('a file that was read before', () => {
  it('is known by its bytes, to whoever sent it', async () => {
    const send = (content: string, name = 'a.html', type = 'text/html', headers = {}) =>
      lab.upload([documentPart(content, name, type)], headers)
    expect(await seenOf(send(PAGE))).toEqual([0, 'Kettles'])
    expect(await seenOf(send(PAGE))).toEqual([1, 'Kettles'])
    expect(await seenOf(send(`${PAGE} `))).toEqual([0, 'Kettles'])
    expect(await seenOf(send(PAGE, 'b.html'))).toEqual([0, 'Kettles'])
    expect(await seenOf(send(PAGE, 'a.html', 'text/html; charset=utf-8'))).toEqual([0, 'Kettles'])
    expect(await seenOf(send(PAGE, 'a.html', 'text/html', OTHER_CALLER))).toEqual([0, 'Kettles'])
    expect(await seenOf(send(PAGE))).toEqual([1, 'Kettles'])
  })
})

describe('with a cache of no time', () => {
  it('every request asks again', async () => {
    const other = await startDocumentLab({ sections: { documents: { cacheMs: 0 } } })
    try {
      other.target.answers.set('/', answerOf(PAGE))
      for (let asked = 1; asked <= 2; asked++) {
        expect(await seenOf(other.parse('/'))).toEqual([0, 'Kettles'])
        expect(other.target.heads).toHaveLength(asked)
      }
      for (let sent = 1; sent <= 2; sent++) {
        expect(await seenOf(other.upload([documentPart(PAGE, 'a.html')]))).toEqual([0, 'Kettles'])
      }
    } finally {
      await other.close()
    }
  })
})
