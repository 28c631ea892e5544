import { describe, expect, it } from '@jest/globals'
import { newCall } from '../../test/support/raw-upstream.js'
import { readLines } from '../core/sse.js'
import { AudioCounter, SpeechEventMeter } from './speech-event-meter.js'
import { SpeechMeter } from './speech-meter.js'

function soFar(format: 'pcm' | 'wav' | 'mp3', bytesOut: number, characters = 7): unknown {
  const { log } = newCall()
  log.bytesOut = bytesOut
  return new SpeechMeter(log, () => characters, format).usageSoFar()
}

describe('What a speech has used so far', () => {
  it.each([
    ['pcm', 24_000, { input_characters: 7, spoken_seconds: 0.5 }],
    ['wav', 24_044, { input_characters: 7, spoken_seconds: 0.5 }],
    ['wav', 10, { input_characters: 7, spoken_seconds: 0 }],
    ['mp3', 24_000, { input_characters: 7 }],
  ] as const)('is its characters, and its seconds where %s tells them', (format, bytes, units) => {
    expect(soFar(format, bytes)).toEqual({ units, estimated: true })
  })

  it('is nothing before the first piece', () => {
    expect(soFar('pcm', 0, 0)).toBeUndefined()
  })
})

describe('What relayed speech events have used so far', () => {
  const delta = (audio: Buffer): string =>
    `data: {"type":"speech.audio.delta","audio":"${audio.toString('base64')}"}\r\n\r\n`

  function counted(...regions: string[]): AudioCounter {
    const counter = new AudioCounter()
    for (const region of regions) readLines(Buffer.from(region), Buffer.from('data: {"error"'), counter)
    return counter
  }

  it.each([1, 2, 3, 4, 5, 600])('counts %i bytes of audio behind their base64', (bytes) => {
    const piece = delta(Buffer.alloc(bytes, 0xff))
    expect(counted(piece + piece, piece).count).toBe(3 * bytes)
  })

  it('is told from the audio where its format tells, and from the text elsewhere', () => {
    const audio = counted(delta(Buffer.alloc(48_000 * 3)))
    expect(new SpeechEventMeter('12345678', 'pcm', audio).usageSoFar()).toEqual({
      units: { input_tokens: 2, output_tokens: 50, total_tokens: 52, spoken_seconds: 3 },
      estimated: true,
    })
    expect(new SpeechEventMeter('x'.repeat(15), 'mp3', audio).usageSoFar()).toEqual({
      units: { input_tokens: 4, output_tokens: 17, total_tokens: 21 },
      estimated: true,
    })
  })

  it('is the same beside what the last event says', () => {
    const audio = counted(delta(Buffer.alloc(48_000 * 3)))
    const units = { input_tokens: 2, output_tokens: 50, total_tokens: 52, spoken_seconds: 3 }
    expect(new SpeechEventMeter('12345678', 'pcm', audio).counted()).toEqual(units)
    expect(new SpeechEventMeter('12345678', 'pcm', counted()).counted()).toBeUndefined()
  })

  it('is nothing without audio, whatever else passes', () => {
    const others =
      ': "audio":"AAAA"\r\n\r\ndata: {"audio":"AAA\r\ndata: {"type":"speech.audio.done"}\r\n\r\ndata: [DONE]\r\n\r\n'
    expect(new SpeechEventMeter('x', 'pcm', counted(others)).usageSoFar()).toBeUndefined()
  })
})
