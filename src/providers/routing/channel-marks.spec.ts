import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ChannelMarks } from './channel-marks.js'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('ChannelMarks', () => {
  it('marks a channel for the time given, and no other', () => {
    const marks = new ChannelMarks()
    marks.mark('a', 5000)
    expect([marks.isMarked('a'), marks.isMarked('b')]).toEqual([true, false])
    jest.advanceTimersByTime(4999)
    expect(marks.isMarked('a')).toBe(true)
    jest.advanceTimersByTime(1)
    expect(marks.isMarked('a')).toBe(false)
  })

  it('forgets the mark of a channel that works again', () => {
    const marks = new ChannelMarks()
    marks.mark('a', 5000)
    marks.clear('a')
    expect(marks.isMarked('a')).toBe(false)
  })
})
