import { describe, expect, it } from '@jest/globals'
import { startParts } from './start-parts.js'

interface NamedPart {
  readonly name: string
  close(): Promise<void>
}

/** Notes its name when it is closed. */
const part = (name: string, closed: string[]): NamedPart => ({
  name,
  close: async () => {
    await Promise.resolve()
    closed.push(name)
  },
})

const stuckPart = (name: string): NamedPart => ({
  name,
  close: () => Promise.reject(new Error(`${name} cannot be closed`)),
})

describe('What is started in parts', () => {
  it('runs until it is closed, and then closes its parts, the last one first', async () => {
    const closed: string[] = []
    const whole = await startParts(async (closedAtLast) => {
      const store = closedAtLast(await Promise.resolve(part('store', closed)))
      const server = closedAtLast(await Promise.resolve(part('server', closed)))
      return { names: [store.name, server.name] }
    })
    expect([whole.names, closed]).toEqual([['store', 'server'], []])
    await whole.close()
    expect(closed).toEqual(['server', 'store'])
    await whole.close()
    expect(closed).toHaveLength(2)
  })

  it('closes what was started before a step that fails, and says what failed', async () => {
    const closed: string[] = []
    const started = startParts(async (closedAtLast) => {
      closedAtLast(await Promise.resolve(part('store', closed)))
      closedAtLast(await Promise.resolve(part('server', closed)))
      throw new Error('the balancer is missing')
    })
    await expect(started).rejects.toThrow('the balancer is missing')
    expect(closed).toEqual(['server', 'store'])
  })

  it('closes all others where some cannot be closed, and says what went wrong first', async () => {
    const closed: string[] = []
    const whole = await startParts((closedAtLast) => {
      closedAtLast(part('store', closed))
      closedAtLast(stuckPart('gateway'))
      closedAtLast(part('server', closed))
      closedAtLast(stuckPart('balancer'))
      return Promise.resolve({})
    })
    await expect(whole.close()).rejects.toThrow('balancer cannot be closed')
    expect(closed).toEqual(['server', 'store'])
    await expect(whole.close()).resolves.toBeUndefined()
  })

  it('says why it did not start, also where a part cannot be closed then', async () => {
    const closed: string[] = []
    const started = startParts((closedAtLast) => {
      closedAtLast(part('store', closed))
      closedAtLast(stuckPart('server'))
      return Promise.reject(new Error('the balancer is missing'))
    })
    await expect(started).rejects.toThrow('the balancer is missing')
    expect(closed).toEqual(['store'])
  })
})
