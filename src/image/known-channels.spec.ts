import { describe, expect, it } from '@jest/globals'
import { KnownChannels } from './known-channels.js'

describe('The memory of channels', () => {
  it('knows where a task was found last', () => {
    const known = new KnownChannels()
    expect(known.find('1')).toBeUndefined()
    known.remember('1', 'first')
    known.remember('1', 'second')
    expect(known.find('1')).toBe('second')
  })

  it('holds 10,000 tasks, without those that nobody asked for the longest', () => {
    const known = new KnownChannels()
    for (let id = 0; id < 10_000; id++) known.remember(String(id), 'first')
    known.remember('0', 'first')
    known.remember('new', 'first')
    expect([known.find('0'), known.find('1'), known.find('2'), known.find('new')]).toEqual([
      'first',
      undefined,
      'first',
      'first',
    ])
  })
})
