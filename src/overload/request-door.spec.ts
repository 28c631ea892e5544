import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../config/load-config.js'
import { Admission } from './admission.js'
import { RequestDoor } from './request-gate.js'

const { admission: SETTINGS } = parseConfig('{}', {})

const CHAT = '/v1/chat/completions'

/** The door of a process that refuses requests, in a turn of its event loop that has lasted too long already. */
function busyDoor(): RequestDoor {
  let nowMs = 1_000
  const admission = new Admission(() => SETTINGS, { nowMs: () => nowMs })
  for (let turn = 0; turn < 10; turn++) {
    nowMs += 250
    admission.loop.turned(nowMs, 0, 250)
  }
  nowMs += 50
  return new RequestDoor(
    admission,
    () => true,
    () => undefined,
    () => nowMs,
  )
}

describe('A turn that has room for one more request', () => {
  it('gives it to the first that comes', () => {
    const door = busyDoor()
    expect([door.judge(CHAT), door.judge(CHAT)]).toEqual(['let_in', 'loop_delay'])
  })

  it.each(['/health/live', '/health/ready', '/admin/v1/keys'])(
    'does not give it to %s, which is let in anyway',
    (path) => {
      const door = busyDoor()
      expect([door.judge(path), door.judge(CHAT), door.judge(CHAT)]).toEqual(['let_in', 'let_in', 'loop_delay'])
    },
  )

  it('gives it to nobody in place of operators beyond those that are let in at once', () => {
    const door = busyDoor()
    const operators = Array.from({ length: 6 }, () => door.judge('/admin/v1/keys'))
    expect(operators).toEqual(['let_in', 'let_in', 'let_in', 'let_in', 'let_in', 'loop_delay'])
  })
})

describe('A probe', () => {
  it('is let in however many there are, and none is counted as refused', () => {
    const door = busyDoor()
    const verdicts = Array.from({ length: 50 }, () => door.judge('/health/live'))
    expect(new Set(verdicts)).toEqual(new Set(['let_in']))
    expect(door.isRefusing).toBe(false)
  })
})
