import { describe, expect, it } from '@jest/globals'
import { TranscriptMeter } from './transcript-meter.js'

/** Three seconds at 1,000 tokens a minute, and a token for each piece. */
const HEARD = {
  total_tokens: 54,
  input_tokens: 50,
  input_token_details: { text_tokens: 0, audio_tokens: 50 },
  output_tokens: 4,
}

describe('What a streamed transcript has used', () => {
  it('is, while its upstream has not said it, all of the audio and the pieces that came', () => {
    expect(new TranscriptMeter(3, { count: 4 }).usageSoFar()).toEqual({ units: HEARD, estimated: true })
  })

  it('is counted beside what that has said, with the length of the file', () => {
    expect(new TranscriptMeter(3, { count: 4 }).counted()).toEqual({ ...HEARD, audio_seconds: 3 })
  })

  it('is its pieces alone where the file does not tell its length', () => {
    const meter = new TranscriptMeter(undefined, { count: 4 })
    expect(meter.counted()).toEqual({ output_tokens: 4 })
    expect(meter.usageSoFar()).toEqual({ units: { output_tokens: 4 }, estimated: true })
  })
})
