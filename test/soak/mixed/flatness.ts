import type { Sample } from './process-samples.js'

export type Figure = Exclude<keyof Sample, 'atMs'>

/**
 * What a figure may have grown by over the watched time: about three times what noise alone makes of the slope. That is
 * a third of the spread (standard deviation) of the 120 looks that half an hour has, and a little more where looks
 * are alike that follow each other. Healthy: what runs without a leak have shown (docs/soak.md). A share of the figure
 * would allow a larger process a larger leak: there is none.
 */
const BOUNDS: Readonly<Record<Figure, number>> = {
  // Healthy: growth 1.3 and 2.9. By 130,000 calls in 20 minutes the bound is 125 bytes for each.
  residentMiB: 16,
  // Healthy: growth 0.9 and 1.7.
  heapMiB: 10,
  // Healthy: growth 2.6, spread 2 to 4, with the calls under way and the connections that idle behind them for a minute.
  sockets: 5,
  files: 5,
  // Healthy: growth 0 and 5.6, spread 6, with the calls that wait at the moment.
  timers: 6,
  // Requests, sockets and timers together. Healthy: growth 2.5 and 7, spread 8 to 10.
  resources: 10,
}

/** Caches fill and code is compiled before that. */
const WARM_UP_SHARE = 1 / 3

export interface Flatness {
  readonly figure: Figure
  readonly first: number
  readonly median: number
  readonly most: number
  readonly last: number
  /** Over the watched time, by the slope through all of it. */
  readonly growth: number
  readonly bound: number
  readonly isFlat: boolean
}

/** Judges every figure by its slope over the last two thirds of the samples. Needs three samples there at least. */
export function flatnessOf(samples: readonly Sample[]): readonly Flatness[] {
  const watched = samples.slice(Math.floor(samples.length * WARM_UP_SHARE))
  return (Object.keys(BOUNDS) as Figure[]).map((figure) => judged(figure, watched))
}

function judged(figure: Figure, watched: readonly Sample[]): Flatness {
  const values = watched.map((sample) => sample[figure])
  const times = watched.map(({ atMs }) => atMs)
  const middle = median(values)
  const growth = medianSlope(times, values) * ((times.at(-1) ?? 0) - (times[0] ?? 0))
  const bound = BOUNDS[figure]
  return {
    figure,
    first: values[0] ?? NaN,
    median: middle,
    most: Math.max(...values),
    last: values.at(-1) ?? NaN,
    growth,
    bound,
    // Written so that too few samples, which have no slope, are not flat.
    isFlat: growth <= bound,
  }
}

/** Theil and Sen: the middle of the slopes between all pairs, which a burst here and there does not bend. */
function medianSlope(times: readonly number[], values: readonly number[]): number {
  const slopes: number[] = []
  for (let from = 0; from < values.length; from += 1) {
    for (let to = from + 1; to < values.length; to += 1) {
      slopes.push(((values[to] ?? 0) - (values[from] ?? 0)) / ((times[to] ?? 0) - (times[from] ?? 0)))
    }
  }
  return slopes.length < 3 ? NaN : median(slopes)
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? NaN
}
