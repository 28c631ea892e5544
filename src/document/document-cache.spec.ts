import { beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { ReadDocument } from '../providers/contract.js'
import { DocumentCache } from './document-cache.js'

const CACHE_MS = 60_000
const CACHE_BYTES = 100_000

let store: ConfigStore
let documents: object
let cache: DocumentCache

const configNow = () => parseConfig(JSON.stringify({ documents }), {})

beforeEach(() => {
  documents = { cacheMs: CACHE_MS, cacheBytes: CACHE_BYTES }
  store = new ConfigStore(configNow(), () => Promise.resolve({ config: configNow(), file: '' }))
  cache = new DocumentCache(store)
})

function documentOf(markdown: string): ReadDocument {
  const texts = { url: '', title: '', description: '', keywords: '', siteName: '', favicon: '', contentType: '' }
  return {
    metadata: { ...texts, statusCode: 200 },
    content: Buffer.from(`"html":"","markdown":${JSON.stringify(markdown)}`),
    pages: 1,
    isCached: false,
  }
}
const page = documentOf('page')

describe('A result', () => {
  it('is found by everybody, or by whoever asked for it, or by nobody', () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    cache.begin('b', ':key x')({ document: page, reuse: 'same caller' })
    cache.begin('c', ':key x')({ document: page, reuse: 'nobody' })
    expect(['a', 'b', 'c'].map((identity) => cache.find(identity, ':key x'))).toEqual([page, page, undefined])
    expect(['a', 'b', 'c'].map((identity) => cache.find(identity, ':key y'))).toEqual([page, undefined, undefined])
  })

  it('takes the place of what was known before, also for those for whom it is not', () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    cache.begin('a', ':key y')({ document: documentOf('newer'), reuse: 'nobody' })
    expect(cache.find('a', ':key x')).toBeUndefined()
  })

  it('is forgotten after its time, however often it was asked for', async () => {
    documents = { cacheMs: 100 }
    await store.reload()
    const keptAtMs = performance.now()
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    expect(cache.find('a', ':key x')).toBe(page)
    await eventually(() => cache.find('a', ':key x') === undefined)
    expect(performance.now() - keptAtMs).toBeGreaterThan(95)
  })

  it('gives way to newer ones when there is no room, the one that was asked for last going last', () => {
    const large = documentOf('x'.repeat(30_000))
    for (const identity of ['a', 'b', 'c']) cache.begin(identity, ':key x')({ document: large, reuse: 'anyone' })
    cache.find('a', ':key x')
    cache.begin('d', ':key x')({ document: large, reuse: 'anyone' })
    expect(['a', 'b', 'c', 'd'].map((identity) => cache.find(identity, ':key x') !== undefined)).toEqual([
      true,
      false,
      true,
      true,
    ])
  })

  it('that is larger than the whole cache drives nobody out', () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    cache.begin('b', ':key x')({ document: documentOf('x'.repeat(CACHE_BYTES)), reuse: 'anyone' })
    expect([cache.find('a', ':key x'), cache.find('b', ':key x')]).toEqual([page, undefined])
  })

  it('of an earlier configuration is forgotten, and so is one that was being read under it', async () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    const keep = cache.begin('b', ':key x')
    await store.reload()
    keep({ document: page, reuse: 'anyone' })
    expect([cache.find('a', ':key x'), cache.find('b', ':key x')]).toEqual([undefined, undefined])
    cache.begin('b', ':key x')({ document: page, reuse: 'anyone' })
    expect(cache.find('b', ':key x')).toBe(page)
  })

  it('is never known while the cache is switched off', async () => {
    documents = { cacheMs: 0 }
    await store.reload()
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    expect(cache.find('a', ':key x')).toBeUndefined()
  })
})
