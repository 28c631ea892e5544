import type { Sample } from './process-samples.js'

export type Figure = Exclude<keyof Sample, 'atMs'>

/** Of what a figure is at its middle, and at least: so much it may have grown over the watched time. */
const BOUNDS: Readonly<Record<Figure, { readonly share: number; readonly least: number }>> = {
  residentMiB: { share: 0.1, least: 24 },
  heapMiB: { share: 0.1, least: 12 },
  // These follow the calls under way, two dozen at most, and how long each of them takes at the moment.
  sockets: { share: 0.1, least: 16 },
  files: { share: 0.1, least: 16 },
  timers: { share: 0.1, least: 24 },
  resources: { share: 0.1, least: 36 },
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
  const { share, least } = BOUNDS[figure]
  const bound = Math.max(least, middle * share)
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
