import { describe, expect, it } from '@jest/globals'
import { startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'
import { startParts } from './start-parts.js'
import { startWorkerPair } from './worker-pair.js'
import { childrenOf } from './worker-processes.js'

/** Notes its name when it is closed. */
const part = (name: string, closed: string[]): { readonly name: string; close(): Promise<void> } => ({
  name,
  close: async () => {
    await Promise.resolve()
    closed.push(name)
  },
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

  it.each([
    ['two workers', (): Promise<unknown> => startWorkerPair({ server: { workers: -1 } })],
    ['a cluster', (): Promise<unknown> => startChatCluster({ sections: { timeouts: { totalMs: -1 } } })],
  ])(
    'leaves no process behind where %s cannot start, as the configuration has a fault',
    async (_what, start) => {
      const before = await childrenOf(process.pid)
      await expect(start()).rejects.toThrow('the gateway ended (1)')
      expect(await childrenOf(process.pid)).toEqual(before)
    },
    CLUSTER_START_MS,
  )
})
