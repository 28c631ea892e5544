import { describe, expect, it } from '@jest/globals'
import { type Figure, flatnessOf } from './mixed/flatness.js'
import type { Sample } from './mixed/process-samples.js'

/** One look each ten seconds; whatever is not given stands still. */
const samplesOf = (figure: Figure, values: readonly number[]): Sample[] =>
  values.map((value, at) => ({
    ...{ residentMiB: 200, heapMiB: 80, sockets: 50, files: 70, timers: 40, resources: 120 },
    ...{ atMs: at * 10_000, [figure]: value },
  }))
const notFlat = (samples: readonly Sample[]): Figure[] =>
  flatnessOf(samples)
    .filter(({ isFlat }) => !isFlat)
    .map(({ figure }) => figure)

/** As many looks as half an hour has; the last two thirds, which are judged, grow by so much in all. */
const LOOKS = 180
const WATCHED = 120
const growing = (growth: number, base: number): number[] =>
  [...Array(LOOKS).keys()].map((at) => base + (at * growth) / (WATCHED - 1))

describe('A figure that is watched', () => {
  it('is flat while it stands still, and while it falls', () => {
    expect(notFlat(samplesOf('sockets', Array<number>(90).fill(50)))).toEqual([])
    expect(
      notFlat(
        samplesOf(
          'residentMiB',
          [...Array(90).keys()].map((at) => 400 - at),
        ),
      ),
    ).toEqual([])
  })

  it.each<readonly [Figure, number]>([
    ['residentMiB', 0.5],
    ['heapMiB', 0.25],
    ['sockets', 0.4],
    ['files', 0.4],
    ['timers', 0.6],
    ['resources', 0.8],
  ])('%s is not flat when it grows by %d a look', (figure, each) => {
    expect(
      notFlat(
        samplesOf(
          figure,
          [...Array(90).keys()].map((at) => 50 + at * each),
        ),
      ),
    ).toEqual([figure])
  })

  it.each<readonly [Figure, number]>([
    ['residentMiB', 16],
    ['heapMiB', 10],
    ['sockets', 5],
    ['files', 5],
    ['timers', 6],
    ['resources', 10],
  ])('%s may grow by %d over the watched time and by no more, whatever it is at', (figure, bound) => {
    for (const base of [20, 2000]) {
      expect(notFlat(samplesOf(figure, growing(bound * 0.95, base)))).toEqual([])
      expect(notFlat(samplesOf(figure, growing(bound * 1.05, base)))).toEqual([figure])
    }
  })

  // The spread of a healthy run in each, as docs/soak.md has it: its highest look above its middle.
  it.each<readonly [Figure, number, number]>([
    ['residentMiB', 10, 16],
    ['heapMiB', 21, 10],
    ['sockets', 6, 5],
    ['files', 6, 5],
    ['timers', 14, 6],
    ['resources', 21, 10],
  ])(
    '%s that spreads by %d as healthy runs do is flat, and not when it also grows by twice %d',
    (figure, spread, bound) => {
      const noise = (at: number): number => spread * (((at * 7919) % 101) / 50 - 1)
      const noisy = (growth: number): number[] => growing(growth, 300).map((value, at) => value + noise(at))
      expect(notFlat(samplesOf(figure, noisy(0)))).toEqual([])
      expect(notFlat(samplesOf(figure, noisy(bound * 2)))).toEqual([figure])
    },
  )

  it('is flat when it only grew while everything warmed up', () => {
    expect(
      notFlat(
        samplesOf(
          'residentMiB',
          [...Array(90).keys()].map((at) => Math.min(300, 100 + at * 10)),
        ),
      ),
    ).toEqual([])
  })

  it('is flat under noise and bursts, and not when it grows beneath them', () => {
    const noisy = [...Array(90).keys()].map((at) => 300 + ((at * 7919) % 60) + (at % 20 === 0 ? 400 : 0))
    expect(notFlat(samplesOf('residentMiB', noisy))).toEqual([])
    expect(
      notFlat(
        samplesOf(
          'residentMiB',
          noisy.map((value, at) => value + at * 2),
        ),
      ),
    ).toEqual(['residentMiB'])
  })

  it('is not flat when it was hardly looked at', () => {
    expect(notFlat(samplesOf('sockets', [50, 50]))).toHaveLength(6)
  })
})
