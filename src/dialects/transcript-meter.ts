import type { Units, Usage, UsageMeter } from '../core/request-context.js'
import type { FrameCounter } from '../upstream/sse-relay.js'
import { audioTokens } from './transcription.js'

/** What a streamed transcript has used as long as `transcript.text.done` has not come: all of the audio, and a token for each piece. */
export class TranscriptMeter implements UsageMeter {
  constructor(
    private readonly durationSeconds: number | undefined,
    private readonly deltas: Pick<FrameCounter, 'count'>,
  ) {}

  usageSoFar(): Usage {
    const output = this.deltas.count
    if (this.durationSeconds === undefined) return { units: { output_tokens: output }, estimated: true }
    const input = audioTokens(this.durationSeconds)
    return {
      units: {
        total_tokens: input + output,
        input_tokens: input,
        input_token_details: { text_tokens: 0, audio_tokens: input },
        output_tokens: output,
      },
      estimated: true,
    }
  }

  /** All of it, and the length that it is reckoned from. */
  counted(): Units {
    const { units } = this.usageSoFar()
    return this.durationSeconds === undefined ? units : { ...units, audio_seconds: this.durationSeconds }
  }
}
