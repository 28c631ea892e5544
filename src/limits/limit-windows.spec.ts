import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { MemoryWindows } from './counters.js'

const KEY = 'tokensPerMinute:key:team-a'

describe('The windows of one process', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('count what fits, and nothing of what does not', () => {
    const windows = new MemoryWindows()
    expect(windows.add(KEY, 60, 100)).toMatchObject({ fits: true, counted: 60, used: 60, allowed: 100 })
    expect(windows.add(KEY, 41, 100)).toMatchObject({ fits: false, counted: 0, used: 60 })
    expect(windows.add(KEY, 40, 100)).toMatchObject({ fits: true, used: 100 })
    expect(windows.peek(KEY, 100)).toMatchObject({ used: 100, allowed: 100 })
    expect(windows.peek('tokensPerMinute:key:team-b', 100)).toBeUndefined()
  })

  it('begin with the first use and end a minute later', async () => {
    const windows = new MemoryWindows()
    windows.add(KEY, 100, 100)
    await jest.advanceTimersByTimeAsync(59_999)
    expect(windows.add(KEY, 1, 100)).toMatchObject({ fits: false })
    await jest.advanceTimersByTimeAsync(1)
    const next = windows.add(KEY, 1, 100)
    expect(next).toMatchObject({ fits: true, used: 1 })
    expect(next.endsAtMs - performance.now()).toBe(60_000)
  })

  it('take back into the window it came from, never into a later one', async () => {
    const windows = new MemoryWindows()
    const first = windows.add(KEY, 80, 100)
    expect(windows.giveBack(KEY, 50, 100, first.endsAtMs)).toMatchObject({ used: 30 })
    await jest.advanceTimersByTimeAsync(60_000)
    expect(windows.giveBack(KEY, 30, 100, first.endsAtMs)).toBeUndefined()
    const later = windows.add(KEY, 100, 100)
    expect(later).toMatchObject({ fits: true, used: 100 })
    expect(windows.giveBack(KEY, 30, 100, first.endsAtMs)).toBeUndefined()
    expect(windows.peek(KEY, 100)).toMatchObject({ used: 100 })
  })

  it('debit what was used already, whether it is left or not', () => {
    const windows = new MemoryWindows()
    expect(windows.debit(KEY, 150, 100)).toMatchObject({ used: 150, allowed: 100 })
    expect(windows.add(KEY, 1, 100)).toMatchObject({ fits: false, used: 150 })
  })

  it('go by the limit of each question, so that a changed one holds at once and keeps the count', () => {
    const windows = new MemoryWindows()
    windows.add(KEY, 60, 100)
    expect(windows.add(KEY, 1, 50)).toMatchObject({ fits: false, used: 60, allowed: 50 })
    expect(windows.add(KEY, 100, 200)).toMatchObject({ fits: true, used: 160 })
  })

  it('are forgotten once they are over, by whoever opens one, however many there were', () => {
    const windows = new MemoryWindows()
    for (let key = 0; key < 1000; key++) windows.add(`${KEY}-${key}`, 1, 100)
    jest.advanceTimersByTime(30_000)
    windows.add('later', 1, 100)
    expect(windows.size).toBe(1001)
    jest.advanceTimersByTime(30_000)
    windows.add(KEY, 1, 100)
    expect(windows.size).toBe(2)
  })

  it('keep to a share of each limit, of at least one', () => {
    const windows = new MemoryWindows(0.5)
    expect(windows.add(KEY, 50, 101)).toMatchObject({ fits: true, allowed: 50 })
    expect(windows.add(KEY, 1, 101)).toMatchObject({ fits: false })
    const small = new MemoryWindows(0.01)
    expect(small.add(KEY, 1, 10)).toMatchObject({ fits: true, allowed: 1 })
    expect(small.add(KEY, 1, 10)).toMatchObject({ fits: false })
  })

  it('give a whole share to what exceeds the share but not the limit', () => {
    const windows = new MemoryWindows(0.5)
    expect(windows.add(KEY, 80, 100)).toMatchObject({ fits: true, counted: 50, used: 50 })
    expect(windows.add(KEY, 80, 100)).toMatchObject({ fits: false, used: 50 })
  })

  it('never grant more than the limit, and are empty once everything is given back, in whatever order', () => {
    const step = fc.record({ points: fc.integer({ min: 1, max: 40 }), isBack: fc.boolean(), pick: fc.nat() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const windows = new MemoryWindows()
        const granted: { readonly points: number; readonly endsAtMs: number }[] = []
        const sum = (): number => granted.reduce((total, { points }) => total + points, 0)
        for (const { points, isBack, pick } of steps) {
          const [back] = isBack && granted.length > 0 ? granted.splice(pick % granted.length, 1) : []
          if (back !== undefined) windows.giveBack(KEY, back.points, 100, back.endsAtMs)
          else {
            const addition = windows.add(KEY, points, 100)
            expect(addition.fits).toBe(sum() + points <= 100)
            if (addition.fits) granted.push({ points, endsAtMs: addition.endsAtMs })
          }
          expect(windows.peek(KEY, 100)?.used ?? 0).toBe(sum())
        }
        for (const { points, endsAtMs } of granted) windows.giveBack(KEY, points, 100, endsAtMs)
        expect(windows.peek(KEY, 100)?.used ?? 0).toBe(0)
      }),
    )
  })
})
