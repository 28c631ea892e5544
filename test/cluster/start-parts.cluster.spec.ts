import { describe, expect, it } from '@jest/globals'
import { startBalancer } from './balancer.js'
import { startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'
import { startWorkerPair } from './worker-pair.js'
import { childrenOf } from './worker-processes.js'

const NOBODY = '127.0.0.1:9'

/** It runs, and answers nobody who asks whether it lives. */
const mute = (configuration: string): string => configuration.replace('monitor-uri /live', '')

describe('What is started in parts', () => {
  it.each([
    ['two workers', (): Promise<unknown> => startWorkerPair({ server: { workers: -1 } }), 'the gateway ended (1)'],
    [
      'a cluster',
      (): Promise<unknown> => startChatCluster({ sections: { timeouts: { totalMs: -1 } } }),
      'the gateway ended (1)',
    ],
    ['a balancer', (): Promise<unknown> => startBalancer([NOBODY, NOBODY], mute), 'haproxy does not listen'],
  ])(
    'leaves no process behind where %s cannot start, as the configuration has a fault',
    async (_what, start, complaint) => {
      const before = await childrenOf(process.pid)
      await expect(start()).rejects.toThrow(complaint)
      expect(await childrenOf(process.pid)).toEqual(before)
    },
    CLUSTER_START_MS,
  )
})
