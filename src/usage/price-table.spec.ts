import { describe, expect, it } from '@jest/globals'
import { PriceTable } from './price-table.js'

const table = new PriceTable([
  { models: ['*'], kind: 'input_transcription', audioSeconds: '9' },
  { models: ['tts-1'], channels: ['cheap'], characters: '1' },
  { models: ['tts-*', 'speech-*'], characters: '2' },
  { models: ['tts-1'], characters: '3' },
])

const millionCharacters = (model: string, channel: string): string | undefined =>
  table.find(model, channel, 'request')?.costOf({ characters: 1_000_000 }, 1)

describe('The price table', () => {
  it.each([
    ['tts-1', 'cheap', '1'],
    ['tts-1', 'other', '2'],
    ['speech-02-hd', 'cheap', '2'],
    ['TTS-1', 'cheap', undefined],
    ['gpt-4o', 'cheap', undefined],
  ])('gives %s on %s the first row that fits', (model, channel, cost) => {
    expect(millionCharacters(model, channel)).toBe(cost)
    // A second time from memory.
    expect(millionCharacters(model, channel)).toBe(cost)
  })

  it('keeps rows for what sessions hear apart from all others', () => {
    expect(table.find('gpt-realtime', 'p1', 'input_transcription')?.costOf({ audioSeconds: 1 }, 0)).toBe('9')
    expect(table.find('gpt-realtime', 'p1', 'response')).toBeUndefined()
    expect(table.find('tts-1', 'cheap', 'input_transcription')?.costOf({ audioSeconds: 1 }, 0)).toBe('9')
  })

  it('knows its rows whatever a caller invented in between', () => {
    for (let index = 0; index < 25_000; index++) millionCharacters(`tts-${index}`, 'other')
    expect(millionCharacters('tts-1', 'cheap')).toBe('1')
  })
})
