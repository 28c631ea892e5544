import { describe, expect, it } from '@jest/globals'

import { realClock, TaskTimers, VirtualClock } from './task-clock.js'

describe('a virtual clock', () => {
  it('runs what falls due in the order of time, each at its own time, and what that sets up as well', () => {
    const clock = new VirtualClock(1000)
    const seen: [string, number][] = []
    clock.after(30, () => seen.push(['late', clock.nowMs()]))
    clock.after(10, () => {
      seen.push(['early', clock.nowMs()])
      clock.after(5, () => seen.push(['set up on the way', clock.nowMs()]))
    })
    clock.after(31, () => seen.push(['too late', clock.nowMs()]))
    clock.advance(30)
    expect(seen).toEqual([
      ['early', 1010],
      ['set up on the way', 1015],
      ['late', 1030],
    ])
    expect(clock.nowMs()).toBe(1030)
  })

  it('does not run what was cancelled', () => {
    const clock = new VirtualClock()
    let runs = 0
    const cancel = clock.after(10, () => (runs += 1))
    cancel()
    clock.advance(100)
    expect(runs).toBe(0)
  })
})

describe('the real clock', () => {
  it('runs after the delay unless cancelled', async () => {
    const cancelled = realClock.after(1, () => {
      throw new Error('was cancelled')
    })
    cancelled()
    // The clock alone does not keep the process alive; this does.
    const keptAlive = setInterval(() => undefined, 1000)
    await new Promise<void>((resolve) => realClock.after(5, resolve))
    clearInterval(keptAlive)
    expect(Math.abs(realClock.nowMs() - Date.now())).toBeLessThan(1000)
  })
})

describe('the timers of tasks', () => {
  it('are one for each task, the newest', () => {
    const clock = new VirtualClock()
    const timers = new TaskTimers<string>(clock)
    const seen: string[] = []
    timers.set('a', 10, () => seen.push('first of a'))
    timers.set('a', 20, () => seen.push('second of a'))
    timers.set('b', 10, () => seen.push('b'))
    clock.advance(20)
    expect(seen).toEqual(['b', 'second of a'])
    timers.set('a', 10, () => seen.push('cleared'))
    timers.clearAll()
    clock.advance(20)
    expect(seen).toHaveLength(2)
  })
})
