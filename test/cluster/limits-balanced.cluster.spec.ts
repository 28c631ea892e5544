import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'

/** Each of its own, so that no test uses up another's. */
const KEYS = { requests: { requestsPerMinute: 600 }, tokens: { tokensPerMinute: 60_000 } }
type KeyName = keyof typeof KEYS

/** After that its window is over, and more would be served. */
const RUSH_MS = 55_000

/** Requests under way at once, each client's on a connection of its own. */
const AT_ONCE = 25

/** What a call may answer at most: with its prompt it is what is reserved for it, and a part of that is given back. */
const ANSWER_TOKENS = 50

let cluster: ChatCluster
beforeAll(async () => {
  cluster = await startChatCluster({
    keys: Object.entries(KEYS).map(([id, limits]) => ({ id, key: id, limits })),
    // A busy machine is no outage.
    sections: { redis: { timeoutMs: 2000 } },
  })
}, CLUSTER_START_MS)
afterAll(() => cluster.close())

interface Rush {
  readonly served: number
  readonly refused: number
  /** That the served ones say they used. */
  readonly tokens: number
}

/** So many calls through the balancer, as fast as they go. */
async function rush(key: KeyName, calls: number): Promise<Rush> {
  const sum = { served: 0, refused: 0, tokens: 0 }
  let begun = 0
  const client = async (): Promise<void> => {
    while (begun++ < calls) {
      const answer = await fetch(cluster.url + CHAT_PATH, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: chatText('Hi', { max_tokens: ANSWER_TOKENS }),
      })
      const body = (await answer.json()) as { readonly usage?: { readonly total_tokens: number } }
      if (answer.status === 200) sum.served++
      if (answer.status === 429) sum.refused++
      sum.tokens += body.usage?.total_tokens ?? 0
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  return sum
}

describe('Two replicas behind the balancer', () => {
  it(
    'serve 600 of 1,000 requests that all come at once, within two in a hundred',
    async () => {
      const { served, refused } = await rush('requests', 1000)
      expect(served).toBeGreaterThanOrEqual(588)
      expect(served).toBeLessThanOrEqual(612)
      expect(served + refused).toBe(1000)
    },
    RUSH_MS,
  )

  it(
    'serve as many tokens as one key has a minute, within two in a hundred and what is still reserved',
    async () => {
      const { tokens, refused } = await rush('tokens', 8000)
      expect(refused).toBeGreaterThan(0)
      const reserved = AT_ONCE * (ANSWER_TOKENS + 20)
      expect(tokens).toBeGreaterThanOrEqual(0.98 * KEYS.tokens.tokensPerMinute - reserved)
      expect(tokens).toBeLessThanOrEqual(1.02 * KEYS.tokens.tokensPerMinute)
    },
    RUSH_MS,
  )
})
