import { describe, expect, it } from '@jest/globals'
import { type Figure, flatnessOf } from './flatness.js'
import type { Sample } from './process-samples.js'

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
  ])('%s that grows by %d a look is not', (figure, each) => {
    expect(
      notFlat(
        samplesOf(
          figure,
          [...Array(90).keys()].map((at) => 50 + at * each),
        ),
      ),
    ).toEqual([figure])
  })

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
