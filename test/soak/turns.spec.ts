import { describe, expect, it } from '@jest/globals'
import { Turns } from './turns.js'

const take = (turns: Turns<string>, count: number): (string | undefined)[] =>
  Array.from({ length: count }, () => turns.next())

describe('What comes in turn', () => {
  it('comes first and then every third time, each as often as the other', () => {
    const taken = take(new Turns(['cut', 'stall'], 3), 12)
    expect(taken.map((item) => item ?? '')).toEqual(['cut', '', '', 'stall', '', '', 'cut', '', '', 'stall', '', ''])
  })

  it('comes each time where it is to', () => {
    expect(take(new Turns(['one', 'two'], 1), 3)).toEqual(['one', 'two', 'one'])
  })
})
