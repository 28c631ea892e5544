import { BitWriter } from './bit-writer.js'

const SAMPLE_BITS = 16
const CONSTANT_SUBFRAME = 0b000000
const VERBATIM_SUBFRAME = 0b000001
const FIXED_SUBFRAME = 0b001000
const HIGHEST_ORDER = 4
const HIGHEST_PARTITION_ORDER = 4
const HIGHEST_RICE_PARAMETER = 14

interface RicePartitioning {
  readonly order: number
  readonly parameters: readonly number[]
  readonly bits: number
}

/**
 * One FLAC subframe (RFC 9639 section 9.2) of 16-bit samples, filled up to whole bytes: constant when all samples are
 * equal, otherwise a fixed predictor with Rice-coded residual, or the bare samples when that is no larger.
 */
export function encodeFlacSubframe(samples: Int16Array): Buffer {
  const bits = new BitWriter()
  const first = samples[0] ?? 0
  if (samples.every((sample) => sample === first)) {
    writeSubframeHeader(bits, CONSTANT_SUBFRAME)
    bits.write(first, SAMPLE_BITS)
    return bits.finish()
  }
  const { order, residual } = bestFixedPrediction(samples)
  const partitioning = bestPartitioning(residual, samples.length, order)
  if (order * SAMPLE_BITS + partitioning.bits >= samples.length * SAMPLE_BITS) {
    writeSubframeHeader(bits, VERBATIM_SUBFRAME)
    for (const sample of samples) bits.write(sample, SAMPLE_BITS)
    return bits.finish()
  }
  writeSubframeHeader(bits, FIXED_SUBFRAME | order)
  for (const sample of samples.subarray(0, order)) bits.write(sample, SAMPLE_BITS)
  writeResidual(bits, residual, samples.length, order, partitioning)
  return bits.finish()
}

function writeSubframeHeader(bits: BitWriter, type: number): void {
  bits.write(type << 1, 8)
}

/** Every predictor of higher order is the difference of the one below it, and needs one more sample to start from. */
function bestFixedPrediction(samples: Int16Array): { order: number; residual: Int32Array } {
  let residual = Int32Array.from(samples)
  let best = { order: 0, residual, magnitude: sumOfMagnitudes(residual) }
  for (let order = 1; order <= HIGHEST_ORDER && order < samples.length; order += 1) {
    const previous = residual
    residual = previous.subarray(1).map((value, index) => value - (previous[index] ?? 0))
    const magnitude = sumOfMagnitudes(residual)
    if (magnitude < best.magnitude) best = { order, residual, magnitude }
  }
  return best
}

function sumOfMagnitudes(values: Int32Array): number {
  return values.reduce((sum, value) => sum + Math.abs(value), 0)
}

function bestPartitioning(residual: Int32Array, blockSize: number, predictorOrder: number): RicePartitioning {
  let best = ricePartitioning(residual, blockSize, predictorOrder, 0)
  for (let order = 1; order <= HIGHEST_PARTITION_ORDER; order += 1) {
    const partitionSize = blockSize / 2 ** order
    if (!Number.isInteger(partitionSize) || partitionSize <= predictorOrder) break
    const candidate = ricePartitioning(residual, blockSize, predictorOrder, order)
    if (candidate.bits < best.bits) best = candidate
  }
  return best
}

function ricePartitioning(residual: Int32Array, blockSize: number, predictorOrder: number, order: number) {
  let bits = 6
  const parameters = partitions(residual, blockSize, predictorOrder, order).map((partition) => {
    const costs = Array.from({ length: HIGHEST_RICE_PARAMETER + 1 }, (_, parameter) => riceBits(partition, parameter))
    const cheapest = Math.min(...costs)
    bits += 4 + cheapest
    return costs.indexOf(cheapest)
  })
  return { order, parameters, bits }
}

/** The first partition is shorter by the samples that stand before the residual. */
function partitions(residual: Int32Array, blockSize: number, predictorOrder: number, order: number): Int32Array[] {
  const size = blockSize >> order
  return Array.from({ length: 1 << order }, (_, index) =>
    residual.subarray(Math.max(0, index * size - predictorOrder), (index + 1) * size - predictorOrder),
  )
}

function riceBits(values: Int32Array, parameter: number): number {
  return values.reduce((bits, value) => bits + (foldSign(value) >>> parameter) + 1 + parameter, 0)
}

function writeResidual(
  bits: BitWriter,
  residual: Int32Array,
  blockSize: number,
  predictorOrder: number,
  partitioning: RicePartitioning,
): void {
  bits.write(0, 2)
  bits.write(partitioning.order, 4)
  partitions(residual, blockSize, predictorOrder, partitioning.order).forEach((partition, index) => {
    const parameter = partitioning.parameters[index] ?? 0
    bits.write(parameter, 4)
    for (const value of partition) {
      const folded = foldSign(value)
      bits.writeUnary(folded >>> parameter)
      bits.write(folded, parameter)
    }
  })
}

/** 0, -1, 1, -2, 2 … become 0, 1, 2, 3, 4 …, as Rice coding asks for. */
function foldSign(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1
}
