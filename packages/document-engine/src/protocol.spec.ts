import { describe, expect, it } from '@jest/globals'
import { faultAnswer, readAnswer } from './engine-answer.js'
import { EngineFault, type EngineOutput, NO_METADATA } from './model/document.js'

const output = (parts: Partial<EngineOutput> = {}): EngineOutput => ({
  kind: 'html',
  metadata: NO_METADATA,
  html: '',
  markdown: '',
  pages: 1,
  ...parts,
})

describe('The answer with a document', () => {
  it('carries the content as two members of JSON text, in UTF-8 whatever the strings hold', () => {
    const { head, payload } = readAnswer(output({ html: '<p>\u2028"é"</p>', markdown: 'lone \ud800 \u0000' }), 1000)
    expect(head).toEqual({ outcome: 'read', kind: 'html', metadata: NO_METADATA, pages: 1 })
    expect(JSON.parse(`{${payload.toString()}}`)).toEqual({ html: '<p>\u2028"é"</p>', markdown: 'lone \ud800 \u0000' })
    expect(payload.toString()).toContain('\\ud800')
  })

  it('is a fault of the document when the content is longer than the gateway takes', () => {
    const text = '"html":"","markdown":"äß"'
    const bytes = Buffer.byteLength(text)
    expect(readAnswer(output({ markdown: 'äß' }), bytes).payload.toString()).toBe(text)
    expect(readAnswer(output({ markdown: 'äß' }), bytes - 1)).toMatchObject({
      head: { outcome: 'fault', fault: 'too_large' },
      payload: Buffer.alloc(0),
    })
  })

  it('has a head of bounded length, whatever the document says of itself', () => {
    const metadata = { ...NO_METADATA, title: 't'.repeat(1_000_000), keywords: 'k' }
    const { head } = readAnswer(output({ metadata }), 1000)
    expect(JSON.stringify(head).length).toBeLessThan(10_000)
    expect(head).toMatchObject({ metadata: { keywords: 'k' } })
  })
})

function stackOverflow(): unknown {
  const dive = (): number => dive() + 1
  try {
    return dive()
  } catch (error) {
    return error
  }
}

function thrownBy(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

describe('The answer to a failure', () => {
  it.each([
    [
      'a fault of the document',
      new EngineFault('encrypted', 'Locked.'),
      { outcome: 'fault', fault: 'encrypted', message: 'Locked.' },
    ],
    ['a stack that is full', stackOverflow(), { outcome: 'fault', fault: 'too_large' }],
    [
      'a buffer nobody can have',
      new RangeError('Invalid typed array length: 4503599627370496'),
      { outcome: 'out_of_memory' },
    ],
    ['a string nobody can have', thrownBy(() => 'x'.repeat(2 ** 30)), { outcome: 'out_of_memory' }],
    ['memory the system refused', new RangeError('Array buffer allocation failed'), { outcome: 'out_of_memory' }],
    ['any other range', new RangeError('toFixed() digits argument must be between 0 and 100'), { outcome: 'failed' }],
    ['anything thrown', 'a word', { outcome: 'failed', reason: 'a word' }],
  ])('%s', (_what, error, head) => {
    expect(faultAnswer(error)).toMatchObject({ head, payload: Buffer.alloc(0) })
  })
})
