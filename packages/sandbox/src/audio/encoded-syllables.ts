import type { FrameTable } from './frame-schedule.js'
import { ENCODED_SYLLABLES, type EncodedFormat } from './syllables.table.js'

/** Samples of one frame and their rate, as the format's specification fixes them. */
const FRAME_MS: Readonly<Record<EncodedFormat, number>> = {
  mp3: (1000 * 576) / 24_000,
  aac: (1000 * 1024) / 24_000,
  opus: 20,
}

/** The frames of a lossy format, unpacked from the table that scripts/make-sandbox-syllables.mjs wrote. */
export function loadEncodedFrames(format: EncodedFormat): FrameTable<Buffer> {
  const { silence, syllables } = ENCODED_SYLLABLES[format]
  return {
    frameMs: FRAME_MS[format],
    silence: Buffer.from(silence, 'base64'),
    syllables: syllables.map((frames) => frames.split(' ').map((frame) => Buffer.from(frame, 'base64'))),
  }
}
