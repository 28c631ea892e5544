type Names = ReadonlyMap<string, string>

const PAIRS: readonly (readonly [beta: string, ga: string])[] = [
  ['response.text.delta', 'response.output_text.delta'],
  ['response.text.done', 'response.output_text.done'],
  ['response.audio_transcript.delta', 'response.output_audio_transcript.delta'],
  ['response.audio_transcript.done', 'response.output_audio_transcript.done'],
  ['response.audio.delta', 'response.output_audio.delta'],
  ['response.audio.done', 'response.output_audio.done'],
]

/** Server events that differ in nothing but their name. */
export const NAMES_TO_GA: Names = new Map(PAIRS)
export const NAMES_TO_BETA: Names = new Map(PAIRS.map(([beta, ga]) => [ga, beta]))
