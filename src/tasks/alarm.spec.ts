import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { ManualClock } from '../../test/support/task-lab.js'
import { Alarm } from './wake-timer.js'

const HOUR_MS = 3_600_000

interface Rest {
  isOver: boolean
  readonly end: Promise<void>
}

function rest(alarm: Alarm, longestMs: number, shortestMs = 0): Rest {
  const state: { isOver: boolean } = { isOver: false }
  const end = alarm.rest(longestMs, shortestMs).then(() => {
    state.isOver = true
  })
  return Object.assign(state, { end })
}

/** Far more turns than a timer of no time takes. */
async function turns(): Promise<void> {
  const untilMs = performance.now() + 20
  while (performance.now() < untilMs) await nextTurn()
}

describe('A rest', () => {
  it('ends by itself after its longest time', async () => {
    await rest(new Alarm(new ManualClock()), 1).end
  })

  it('ends when the alarm is rung for now, and not when it is rung for later', async () => {
    const clock = new ManualClock()
    const alarm = new Alarm(clock)
    const first = rest(alarm, HOUR_MS)
    alarm.ring(clock.nowMs() + HOUR_MS)
    await turns()
    expect(first.isOver).toBe(false)
    alarm.ring(clock.nowMs())
    await first.end
  })

  it('ends at once when it was rung for before it began, but only the next one does', async () => {
    const clock = new ManualClock()
    const alarm = new Alarm(clock)
    alarm.ring(clock.nowMs())
    await rest(alarm, HOUR_MS).end
    const second = rest(alarm, HOUR_MS)
    await turns()
    expect(second.isOver).toBe(false)
    alarm.switchOff()
    await second.end
  })

  it('remembers what it was rung for until that time has come', async () => {
    const clock = new ManualClock()
    const alarm = new Alarm(clock)
    alarm.ring(clock.nowMs() + 1000)
    await rest(alarm, 1).end
    clock.advance(1000)
    await rest(alarm, HOUR_MS).end
  })

  it('is never shorter than its shortest time, unless it is woken', async () => {
    const clock = new ManualClock()
    const alarm = new Alarm(clock)
    alarm.ring(clock.nowMs())
    const resting = rest(alarm, HOUR_MS, HOUR_MS)
    await turns()
    expect(resting.isOver).toBe(false)
    alarm.wake()
    await resting.end
  })

  it('keeps its pace even when it is woken, but not when the alarm is switched off', async () => {
    const alarm = new Alarm(new ManualClock())
    let isOver = false
    const resting = alarm.rest(0, 0, HOUR_MS).then(() => {
      isOver = true
    })
    alarm.wake()
    await turns()
    expect(isOver).toBe(false)
    alarm.switchOff()
    await resting
  })

  it('follows one that was woken in its full length', async () => {
    const alarm = new Alarm(new ManualClock())
    alarm.wake()
    await rest(alarm, HOUR_MS).end
    const second = rest(alarm, HOUR_MS)
    await turns()
    expect(second.isOver).toBe(false)
    alarm.wake()
    await second.end
  })

  it('is not taken any more after the alarm was switched off', async () => {
    const alarm = new Alarm(new ManualClock())
    alarm.switchOff()
    await rest(alarm, HOUR_MS, HOUR_MS).end
    await rest(alarm, HOUR_MS, HOUR_MS).end
  })
})
