const PCM_SAMPLE_BYTES = 2

/**
 * Changes the sample rate of signed 16-bit little-endian mono pieces by linear interpolation, piece by piece. Good
 * enough for babble without energy above 4 kHz; the duration stays exact. Pieces hold whole samples.
 */
export function* resamplePcm(
  pieces: Iterable<Buffer>,
  fromHz: number,
  toHz: number,
): Generator<Buffer, void, undefined> {
  if (fromHz === toHz) {
    yield* pieces
    return
  }
  const step = fromHz / toHz
  let made = 0
  let before = 0
  let last = 0
  for (const piece of pieces) {
    const count = piece.length / PCM_SAMPLE_BYTES
    const sampleAt = (index: number): number => (index < before ? last : piece.readInt16LE((index - before) * 2))
    const out: number[] = []
    // Every sample needs its right neighbour, so the last stretch of a piece waits for the next one.
    for (; Math.floor(made * step) + 1 < before + count; made += 1) {
      const left = Math.floor(made * step)
      const share = made * step - left
      out.push(Math.round(sampleAt(left) * (1 - share) + sampleAt(left + 1) * share))
    }
    if (count > 0) last = piece.readInt16LE(piece.length - PCM_SAMPLE_BYTES)
    before += count
    if (out.length > 0) yield toBytes(out)
  }
  const rest = Math.max(0, Math.ceil(before / step) - made)
  if (rest > 0) yield toBytes(new Array<number>(rest).fill(last))
}

/** Writes each sample of a mono piece twice: left and right. */
export function* toStereo(pieces: Iterable<Buffer>): Generator<Buffer, void, undefined> {
  for (const piece of pieces) {
    const stereo = Buffer.alloc(piece.length * 2)
    for (let offset = 0; offset < piece.length; offset += PCM_SAMPLE_BYTES) {
      piece.copy(stereo, offset * 2, offset, offset + PCM_SAMPLE_BYTES)
      piece.copy(stereo, offset * 2 + PCM_SAMPLE_BYTES, offset, offset + PCM_SAMPLE_BYTES)
    }
    yield stereo
  }
}

/** The same bytes in pieces of exactly `size` bytes; the last one may be shorter. */
export function* recut(pieces: Iterable<Buffer>, size: number): Generator<Buffer, void, undefined> {
  let waiting: Buffer = Buffer.alloc(0)
  for (const piece of pieces) {
    waiting = waiting.length === 0 ? piece : Buffer.concat([waiting, piece])
    while (waiting.length >= size) {
      yield waiting.subarray(0, size)
      waiting = waiting.subarray(size)
    }
  }
  if (waiting.length > 0) yield waiting
}

function toBytes(samples: readonly number[]): Buffer {
  const bytes = Buffer.alloc(samples.length * PCM_SAMPLE_BYTES)
  samples.forEach((sample, index) => bytes.writeInt16LE(sample, index * PCM_SAMPLE_BYTES))
  return bytes
}
