import { describe, expect, it } from '@jest/globals'
import { nextState } from './task-states.js'
import { isTerminal, type TaskState } from './task.js'

const STATES: readonly TaskState[] = ['creating', 'unknown', 'submitted', 'processing', 'succeed', 'failed']

/** Written out anew: rows are from, columns to, in the order of `STATES`. */
const MAY: Readonly<Record<TaskState, string>> = {
  creating: '.xxxxx',
  unknown: '..xxxx',
  submitted: '...xxx',
  processing: '....xx',
  succeed: '......',
  failed: '......',
}

const PAIRS = STATES.flatMap((from) => STATES.map((to, column) => ({ from, to, may: MAY[from][column] === 'x' })))

describe('The states of a task', () => {
  it.each(PAIRS)('$from to $to: $may', ({ from, to, may }) => {
    expect(nextState(from, to)).toBe(may ? to : undefined)
  })

  it('only go forward: what was left is never entered again', () => {
    for (const { from, to, may } of PAIRS) {
      if (may) expect(nextState(to, from)).toBeUndefined()
    }
  })

  it('end nowhere but in succeed and failed', () => {
    for (const state of STATES) expect(MAY[state].includes('x')).toBe(!isTerminal(state))
  })
})
