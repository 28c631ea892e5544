import { describe, expect, it } from '@jest/globals'
import { FaultRound } from './fault-round.js'

const take = (round: FaultRound<string>, count: number): (string | undefined)[] =>
  Array.from({ length: count }, () => round.next())

describe('Faults in turn', () => {
  it('strike the first and then every so-manieth, each kind as often as any other', () => {
    const taken = take(new FaultRound(['cut', 'stall'], 3), 12)
    expect(taken.map((fault) => fault ?? '')).toEqual(['cut', '', '', 'stall', '', '', 'cut', '', '', 'stall', '', ''])
  })

  it('strike every time where that is asked for', () => {
    expect(take(new FaultRound(['one', 'two'], 1), 3)).toEqual(['one', 'two', 'one'])
  })
})
