import { planSpeech, speechDurationMs } from './speech-plan.js'

/**
 * The sound of one format, cut into frames of equal length. Every syllable has the same number of frames, and begins and
 * ends in silence, so that syllables and silent frames follow one another in any order.
 */
export interface FrameTable<Frame> {
  readonly frameMs: number
  readonly silence: Frame
  readonly syllables: readonly (readonly Frame[])[]
}

/** How many frames of `frameMs` the speech has: its duration to the nearest frame. */
export function countSpeechFrames(text: string, speed: number, frameMs: number): number {
  return Math.round(speechDurationMs(text, speed) / frameMs)
}

/**
 * The frames of a text in order, one at a time.
 *
 * Frames have a fixed length and characters have not, so a syllable is laid on the nearest frame; one that would start
 * before the last one ended is left out (fast speech), and the last one moves forward to end with the speech. The
 * length of the whole is therefore exact to half a frame.
 */
export function* scheduleFrames<Frame>(
  text: string,
  speed: number,
  table: FrameTable<Frame>,
): Generator<Frame, void, undefined> {
  const totalFrames = countSpeechFrames(text, speed, table.frameMs)
  let laidFrames = 0
  let elapsedMs = 0
  for (const segment of planSpeech(text, speed)) {
    const startMs = elapsedMs
    elapsedMs += segment.durationMs
    if (segment.kind === 'silence') continue
    const syllable = table.syllables[segment.pitch % table.syllables.length] ?? []
    const startFrame = Math.min(Math.round(startMs / table.frameMs), totalFrames - syllable.length)
    if (startFrame < laidFrames) continue
    for (; laidFrames < startFrame; laidFrames += 1) yield table.silence
    yield* syllable
    laidFrames += syllable.length
  }
  for (; laidFrames < totalFrames; laidFrames += 1) yield table.silence
}
