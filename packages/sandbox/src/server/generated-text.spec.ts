import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { faultOfText } from './faults.js'
import { answerPieces, estimateTokens, exampleOf, argumentsWord, numberWord, TextRun } from './generated-text.js'

describe('the words of an answer', () => {
  it('come out whole when nothing ends them', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!text.includes('#'))
        expect(new TextRun(answerPieces('', text), Infinity, []).join()).toBe(text.trimEnd())
      }),
    )
  })

  it('end at the limit and say so', () => {
    const run = new TextRun(['a', ' b', ' c'], 2, [])
    expect([run.join(), run.count, run.ended]).toEqual(['a b', 2, 'limit'])
    const exact = new TextRun(['a', ' b'], 2, [])
    expect([exact.join(), exact.ended]).toEqual(['a b', 'complete'])
  })

  it('end at the earliest stop sequence, also across pieces', () => {
    const run = new TextRun(['one', ' two', ' three'], Infinity, ['three', 'e t'])
    expect([run.join(), run.ended, run.stoppedBy]).toEqual(['on', 'stop', 'e t'])
  })
})

describe('magic words', () => {
  it('are faults only as the first word of a text', () => {
    expect(['#500', '  #500 x', 'say #500', '#5000', '#nothing'].map(faultOfText)).toEqual([
      '500',
      '500',
      undefined,
      undefined,
      undefined,
    ])
  })

  it('give numbers and arguments anywhere in it', () => {
    expect(numberWord('please #chunks=12 now', 'chunks')).toBe(12)
    expect(numberWord('#chunks=12x', 'chunks')).toBeUndefined()
    expect(argumentsWord('call it #args={"a": 1.0}')).toBe('{"a": 1.0}')
    expect([...answerPieces('#words=3', 'ignored')].join('')).toBe('word1 word2 word3')
  })

  it('count tokens by script', () => {
    expect([estimateTokens(''), estimateTokens('abcde'), estimateTokens('你好')]).toEqual([0, 2, 2])
  })
})

it('examples satisfy the schema they are made from', () => {
  const schema = {
    type: 'object',
    properties: {
      city: { type: 'string' },
      days: { type: 'integer', minimum: 2 },
      tags: { type: 'array', items: { enum: ['warm', 'cold'] } },
      place: { anyOf: [{ type: 'null' }, { type: 'object' }] },
      skipped: { type: 'boolean' },
    },
    required: ['city', 'days', 'tags', 'place'],
  }
  expect(exampleOf(schema)).toEqual({ city: 'example city', days: 2, tags: ['warm'], place: null })
  const endless: Record<string, unknown> = { type: 'object' }
  endless['properties'] = { again: endless }
  expect(JSON.stringify(exampleOf(endless)).length).toBeLessThan(200)
})
