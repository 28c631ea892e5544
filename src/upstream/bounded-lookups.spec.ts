import { describe, expect, it } from '@jest/globals'
import { boundedLookups } from './bounded-lookups.js'
import type { ResolveHost } from './ssrf-guard.js'

const ADDRESSES = [{ address: '93.184.216.34', family: 4 }]

describe('Lookups of names', () => {
  it('are so many at once and no more, also when nobody waits for them, and go on once one has ended', async () => {
    const ends: (() => void)[] = []
    const hanging: ResolveHost = async () => {
      await new Promise<void>((end) => ends.push(end))
      return ADDRESSES
    }
    const resolve = boundedLookups(hanging, 2)
    const running = [resolve('a.test'), resolve('b.test')]
    await expect(resolve('c.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
    expect(ends).toHaveLength(2)
    ends[0]?.()
    expect(await running[0]).toEqual(ADDRESSES)
    const next = resolve('c.test')
    expect(ends).toHaveLength(3)
    for (const end of ends) end()
    expect(await Promise.all([...running, next])).toEqual([ADDRESSES, ADDRESSES, ADDRESSES])
  })

  it('fail as the name server says, and make room', async () => {
    const failure = new Error('ENOTFOUND')
    const resolve = boundedLookups(() => Promise.reject(failure), 1)
    for (let asked = 0; asked < 3; asked++) await expect(resolve('a.test')).rejects.toBe(failure)
  })
})
