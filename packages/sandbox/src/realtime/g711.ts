/** ITU-T G.711 in both laws: 16-bit samples to bytes and back. */

const MU_LAW_BIAS = 0x84
const MU_LAW_CLIP = 32_635
/** A-law inverts every other bit on the line. */
const A_LAW_LINE_MASK = 0x55

export function encodeMuLaw(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0
  const magnitude = Math.min(Math.abs(sample), MU_LAW_CLIP) + MU_LAW_BIAS
  const exponent = Math.floor(Math.log2(magnitude)) - 7
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f
  return ~(sign | (exponent << 4) | mantissa) & 0xff
}

export function decodeMuLaw(byte: number): number {
  const bits = ~byte & 0xff
  const magnitude = (((bits & 0x0f) << 3) + MU_LAW_BIAS) << ((bits & 0x70) >> 4)
  return bits & 0x80 ? MU_LAW_BIAS - magnitude : magnitude - MU_LAW_BIAS
}

export function encodeALaw(sample: number): number {
  const sign = sample >= 0 ? 0x80 : 0
  const magnitude = sample >= 0 ? sample : -sample - 1
  if (magnitude < 256) return (sign | (magnitude >> 4)) ^ A_LAW_LINE_MASK
  const exponent = Math.floor(Math.log2(magnitude)) - 7
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f
  return (sign | (exponent << 4) | mantissa) ^ A_LAW_LINE_MASK
}

export function decodeALaw(byte: number): number {
  const bits = byte ^ A_LAW_LINE_MASK
  const segment = (bits & 0x70) >> 4
  const step = (bits & 0x0f) << 4
  const magnitude = segment === 0 ? step + 8 : (step + 0x108) << (segment - 1)
  return bits & 0x80 ? magnitude : -magnitude
}
