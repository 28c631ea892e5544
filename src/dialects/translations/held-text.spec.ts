import { describe, expect, it } from '@jest/globals'
import { HeldText } from './held-text.js'

describe('Text that is held until it can be written', () => {
  it('is given back whole, and once', () => {
    const held = new HeldText(10, 'Too long.')
    expect([held.isEmpty, held.take()]).toEqual([true, ''])
    held.add('ab')
    held.add('c')
    expect([held.isEmpty, held.take(), held.isEmpty, held.take()]).toEqual([false, 'abc', true, ''])
  })

  it('is counted in bytes as memory of the request', () => {
    let bytes = 0
    const held = new HeldText(10, 'Too long.', { add: (more) => void (bytes += more) })
    held.add('ä')
    held.add('b')
    expect(bytes).toBe(3)
  })

  it('is counted, and bounded, with what is held elsewhere', () => {
    let bytes = 0
    const held = new HeldText(4, 'Too long.', { add: (more) => void (bytes += more) })
    held.add('a')
    held.count('äb')
    expect([bytes, held.take()]).toEqual([4, 'a'])
    held.count('c')
    expect(() => {
      held.count('d')
    }).toThrow(expect.objectContaining({ kind: 'upstream_failed', message: 'Too long.' }))
  })

  it('is the upstream’s failure beyond its limit, also where some of it was taken', () => {
    const held = new HeldText(4, 'Too long.')
    held.add('abc')
    held.take()
    held.add('d')
    expect(() => {
      held.add('e')
    }).toThrow(expect.objectContaining({ kind: 'upstream_failed', message: 'Too long.' }))
  })
})
