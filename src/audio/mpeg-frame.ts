/** One header of MPEG-1, MPEG-2 or MPEG-2.5 audio. */
export interface MpegFrame {
  readonly layer: 1 | 2 | 3
  /** Length of the frame with its header. */
  readonly bytes: number
  /** Playing time. */
  readonly seconds: number
  /** Version, layer and sample rate: what stays the same through a stream. */
  readonly kind: number
}

/** kbit/s by bit-rate index 1 to 14. */
const BIT_RATES = {
  v1: {
    1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  },
  v2: {
    1: [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    2: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    3: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  },
} as const
/** Hz of MPEG-1; MPEG-2 has half, MPEG-2.5 a quarter. */
const SAMPLE_RATES = [44_100, 48_000, 32_000]
const VERSION_DIVISORS: Readonly<Record<number, number>> = { 3: 1, 2: 2, 0: 4 }
const LAYERS: Readonly<Record<number, 1 | 2 | 3>> = { 3: 1, 2: 2, 1: 3 }

/** Reads a frame header; undefined when the four bytes are none (free-format streams count as none). */
export function parseFrame(header: Buffer): MpegFrame | undefined {
  if (header.length < 4 || header.readUInt16BE(0) < 0xffe0) return undefined
  const [second, third] = [header.readUInt8(1), header.readUInt8(2)]
  const divisor = VERSION_DIVISORS[(second >> 3) & 3]
  const layer = LAYERS[(second >> 1) & 3]
  const sampleRate = SAMPLE_RATES[(third >> 2) & 3]
  if (divisor === undefined || layer === undefined || sampleRate === undefined) return undefined
  const bitRate = BIT_RATES[divisor === 1 ? 'v1' : 'v2'][layer][(third >> 4) - 1]
  if (bitRate === undefined) return undefined
  const rate = sampleRate / divisor
  const samples = layer === 1 ? 384 : layer === 3 && divisor > 1 ? 576 : 1152
  // A slot is what padding adds: four bytes in layer I, one byte in the others.
  const slotBytes = layer === 1 ? 4 : 1
  const slots = Math.floor((samples * bitRate * 1000) / (8 * slotBytes * rate)) + ((third >> 1) & 1)
  return { layer, bytes: slots * slotBytes, seconds: samples / rate, kind: ((second & 0x1e) << 8) | (third & 0x0c) }
}
