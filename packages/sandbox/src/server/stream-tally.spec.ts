import { describe, expect, it } from '@jest/globals'
import { TranscriptTally } from './served-usage.js'

const WHOLE = { promptTokens: 30, audioInputTokens: 30, completionTokens: 12 }
const frame = (event: object): string => `data: ${JSON.stringify(event)}\r\n\r\n`
const PIECE = frame({ type: 'transcript.text.delta', delta: 'Hello' })

function unitsOf(...frames: readonly string[]): object {
  const tally = new TranscriptTally(WHOLE)
  frames.forEach(tally.note)
  return tally.units
}

describe('What was served of a transcript', () => {
  it('is all of it once it has come to its end', () => {
    expect(unitsOf(PIECE, frame({ type: 'transcript.text.done', text: 'Hello' }), 'data: [DONE]\r\n\r\n')).toEqual(
      WHOLE,
    )
  })

  it('is all of the audio and the pieces that were written, before that', () => {
    expect(unitsOf(PIECE, PIECE, PIECE.slice(0, 20))).toEqual({ ...WHOLE, completionTokens: 2 })
  })

  it('is the audio where nothing was written', () => {
    expect(unitsOf()).toEqual({ ...WHOLE, completionTokens: 0 })
  })
})
