import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Random } from '../random.js'
import { type MixedStage, startStage } from './mixed-stage.js'
import type { Traffic } from './mixed-traffic.js'

/** So many that each model, format and kind of answer is among them. */
const CALLS: readonly (readonly [Traffic, number])[] = [
  ['chat', 5],
  ['chatStream', 15],
  ['messagesStream', 15],
  ['speech', 40],
  ['transcription', 15],
  // Followed up to its end it takes two seconds.
  ['task', 6],
]

let stage: MixedStage
beforeAll(async () => {
  stage = await startStage({ workers: 1, runMs: 1, sampleMs: 1, seed: 1 })
})
afterAll(() => stage.close())

describe('What callers of the soak are answered while no upstream fails', () => {
  it.each(CALLS)('is never taken for broken (%s)', async (kind, calls) => {
    const random = new Random(3)
    const endings = new Set<string>()
    // One by one: the narrow key has few places, and what it has counts for all of a minute.
    for (let call = 0; call < calls; call += 1) endings.add(await stage.traffic.call(kind, random))
    // Some leave the events of a task before its end, and the narrow key is limited.
    expect([...endings].filter((ending) => ending !== 'left' && ending !== 'limited')).toEqual(['answered'])
  })

  it('is refused where it is to be', async () => {
    expect(await stage.traffic.call('refused', new Random(1))).toBe('refused')
  })
})
