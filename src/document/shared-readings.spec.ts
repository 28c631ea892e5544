import { beforeEach, describe, expect, it } from '@jest/globals'
import { contentOf } from '../../test/support/document-stand-ins.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { BytesInFlight } from '../core/memory-budget.js'
import type { Call } from '../core/request-context.js'
import type { DocumentReading } from './document-reading.js'
import { SharedReadings } from './shared-readings.js'

const TEXTS = { url: '', title: '', description: '', keywords: '', siteName: '', favicon: '', contentType: '' }
const READING: DocumentReading = {
  document: { metadata: { ...TEXTS, statusCode: 200 }, content: contentOf(''), pages: 1, isCached: false },
  reuse: 'nobody',
}

let readings: SharedReadings
/** The calls for which readings were begun. */
let begun: Call[]
let end: (reading: DocumentReading) => void

beforeEach(() => {
  readings = new SharedReadings()
  begun = []
})

const wait = (key: string, call = newCall(), timeoutMs = 20_000): Promise<DocumentReading> =>
  readings.wait(key, call, { timeoutMs, deadlineAtMs: performance.now() + timeoutMs }, (shared) => {
    begun.push(shared)
    return new Promise((resolve) => {
      end = resolve
    })
  })

describe('A reading', () => {
  it('is shared by those who ask for the same before it ends, and by nobody else', async () => {
    const [first, second] = [wait('a'), wait('a')]
    expect(begun).toHaveLength(1)
    end(READING)
    expect(await Promise.all([first, second])).toEqual([READING, READING])
    const later = newCall()
    const waiting = [wait('a', later), wait('b', later)]
    expect(begun).toHaveLength(3)
    later.departure.announce()
    for (const left of waiting) await expect(left).rejects.toMatchObject({ kind: 'caller_left' })
  })

  it('that everybody has left is ended, and nobody joins it any more, however long its end takes', async () => {
    const leaving = newCall()
    const left = wait('a', leaving)
    leaving.departure.announce()
    await expect(left).rejects.toMatchObject({ kind: 'caller_left' })
    expect(begun[0]?.departure.left).toBe(true)
    const staying = wait('a')
    expect(begun).toHaveLength(2)
    end(READING)
    expect(await staying).toBe(READING)
  })

  it('counts what it holds among the bytes of whoever began it, until it ends', async () => {
    const memory = new BytesInFlight(() => ({ bytesInFlight: 1000, callerShare: 1 }))
    const waiting = wait('a', Object.assign(newCall(), { memory, caller: { keyId: 'k' } }))
    const [shared] = begun
    shared?.memory?.add(shared, 600)
    expect(memory.bytes).toBe(600)
    end(READING)
    await waiting
    expect(memory.bytes).toBe(0)
    shared?.memory?.add(shared, 600)
    expect(memory.bytes).toBe(0)
  })

  it('tells each of those who wait what it took, and who asked it knows nothing of the others', async () => {
    const calls = [newCall(), newCall()]
    const waiting = calls.map((call) => wait('a', call))
    const [shared] = begun
    if (shared === undefined) throw new Error('nothing was begun')
    shared.log.tried.push({ channelId: 'reader-main', startedAtMs: 1, endedAtMs: 2 })
    Object.assign(shared.log, { upstreamMs: 5, channelId: 'reader-main', upstreamStatus: 203 })
    end(READING)
    await Promise.all(waiting)
    for (const { log } of calls) {
      expect(log).toMatchObject({
        tried: [{ startedAtMs: 1 }],
        upstreamMs: 5,
        channelId: 'reader-main',
        upstreamStatus: 203,
      })
    }
    expect(calls).not.toContain(shared)
  })
})
