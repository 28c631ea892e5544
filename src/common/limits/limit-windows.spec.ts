import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { MemoryWindows } from './memory-windows.js'

const KEY = 'tokensPerMinute:key:team-a'

describe('The windows of one process', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('count what fits, and nothing of what does not', async () => {
    const windows = new MemoryWindows()
    expect(await windows.add(KEY, 60, 100)).toMatchObject({ fits: true, counted: 60, used: 60, allowed: 100 })
    expect(await windows.add(KEY, 41, 100)).toMatchObject({ fits: false, counted: 0, used: 60 })
    expect(await windows.add(KEY, 40, 100)).toMatchObject({ fits: true, used: 100 })
    expect(await windows.peek(KEY, 100)).toMatchObject({ used: 100, allowed: 100 })
    expect(await windows.peek('tokensPerMinute:key:team-b', 100)).toBeUndefined()
  })

  it('begin with the first use and end a minute later', async () => {
    const windows = new MemoryWindows()
    await windows.add(KEY, 100, 100)
    await jest.advanceTimersByTimeAsync(59_999)
    expect(await windows.add(KEY, 1, 100)).toMatchObject({ fits: false })
    await jest.advanceTimersByTimeAsync(1)
    const next = await windows.add(KEY, 1, 100)
    expect(next).toMatchObject({ fits: true, used: 1 })
    expect(next.endsAtMs - performance.now()).toBe(60_000)
  })

  it('take back into the window it came from, never into a later one', async () => {
    const windows = new MemoryWindows()
    const first = await windows.add(KEY, 80, 100)
    expect(await windows.giveBack(KEY, 50, 100, first.endsAtMs)).toMatchObject({ used: 30 })
    await jest.advanceTimersByTimeAsync(60_000)
    expect(await windows.giveBack(KEY, 30, 100, first.endsAtMs)).toBeUndefined()
    const later = await windows.add(KEY, 100, 100)
    expect(later).toMatchObject({ fits: true, used: 100 })
    expect(await windows.giveBack(KEY, 30, 100, first.endsAtMs)).toBeUndefined()
    expect(await windows.peek(KEY, 100)).toMatchObject({ used: 100 })
  })

  it('debit what was used already, whether it is left or not', async () => {
    const windows = new MemoryWindows()
    expect(await windows.debit(KEY, 150, 100)).toMatchObject({ used: 150, allowed: 100 })
    expect(await windows.add(KEY, 1, 100)).toMatchObject({ fits: false, used: 150 })
  })

  it('go by the limit of each question, so that a changed one holds at once and keeps the count', async () => {
    const windows = new MemoryWindows()
    await windows.add(KEY, 60, 100)
    expect(await windows.add(KEY, 1, 50)).toMatchObject({ fits: false, used: 60, allowed: 50 })
    expect(await windows.add(KEY, 100, 200)).toMatchObject({ fits: true, used: 160 })
  })

  it('keep to a share of each limit, of at least one', async () => {
    const windows = new MemoryWindows(0.5)
    expect(await windows.add(KEY, 50, 101)).toMatchObject({ fits: true, allowed: 50 })
    expect(await windows.add(KEY, 1, 101)).toMatchObject({ fits: false })
    const small = new MemoryWindows(0.01)
    expect(await small.add(KEY, 1, 10)).toMatchObject({ fits: true, allowed: 1 })
    expect(await small.add(KEY, 1, 10)).toMatchObject({ fits: false })
  })

  it('give a whole share to what exceeds the share but not the limit', async () => {
    const windows = new MemoryWindows(0.5)
    expect(await windows.add(KEY, 80, 100)).toMatchObject({ fits: true, counted: 50, used: 50 })
    expect(await windows.add(KEY, 80, 100)).toMatchObject({ fits: false, used: 50 })
  })

  it('never grant more than the limit, and are empty once everything is given back, in whatever order', async () => {
    const step = fc.record({ points: fc.integer({ min: 1, max: 40 }), isBack: fc.boolean(), pick: fc.nat() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const windows = new MemoryWindows()
        const granted: { readonly points: number; readonly endsAtMs: number }[] = []
        const sum = (): number => granted.reduce((total, { points }) => total + points, 0)
        for (const { points, isBack, pick } of steps) {
          const [back] = isBack && granted.length > 0 ? granted.splice(pick % granted.length, 1) : []
          if (back !== undefined) await windows.giveBack(KEY, back.points, 100, back.endsAtMs)
          else {
            const addition = await windows.add(KEY, points, 100)
            expect(addition.fits).toBe(sum() + points <= 100)
            if (addition.fits) granted.push({ points, endsAtMs: addition.endsAtMs })
          }
          expect((await windows.peek(KEY, 100))?.used ?? 0).toBe(sum())
        }
        for (const { points, endsAtMs } of granted) await windows.giveBack(KEY, points, 100, endsAtMs)
        expect((await windows.peek(KEY, 100))?.used ?? 0).toBe(0)
      }),
    )
  })
})
