/** Why bytes are not the audio they are said to be. */
export class AudioFault extends Error {
  override readonly name = 'AudioFault'
}

/** Compressed audio taken apart, not yet decoded. */
export interface FramedAudio {
  readonly frames: readonly Buffer[]
  readonly sampleRateHz: number
  readonly channels: number
  /** Per channel, as the frames' headers say. */
  readonly samples: number
  readonly warnings: readonly string[]
}

/** What one frame says of itself. `bytes` is its whole length, its header included. */
export interface FrameHead {
  readonly bytes: number
  readonly samples: number
  readonly sampleRateHz: number
  readonly channels: number
}

/** Walks frames that follow one another without a gap from `start` to the very end; all must agree on rate and channels. */
export function walkFrames(
  bytes: Buffer,
  start: number,
  readHead: (bytes: Buffer, at: number) => FrameHead | undefined,
): Omit<FramedAudio, 'warnings'> {
  const frames: Buffer[] = []
  let samples = 0
  let first: FrameHead | undefined
  for (let at = start; at < bytes.length;) {
    const head = readHead(bytes, at)
    if (head === undefined) throw new AudioFault(`no frame begins at byte ${at} of ${bytes.length}`)
    if (at + head.bytes > bytes.length) throw new AudioFault(`the frame at byte ${at} breaks off`)
    first ??= head
    if (head.sampleRateHz !== first.sampleRateHz || head.channels !== first.channels)
      throw new AudioFault(`the frame at byte ${at} has another rate or other channels`)
    frames.push(bytes.subarray(at, at + head.bytes))
    samples += head.samples
    at += head.bytes
  }
  if (first === undefined) throw new AudioFault('there is not one frame in it')
  return { frames, samples, sampleRateHz: first.sampleRateHz, channels: first.channels }
}
