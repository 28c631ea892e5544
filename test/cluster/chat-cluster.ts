import { type P1Simulator, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { p1Channel, UPSTREAM_KEY } from '../support/p1-gateway.js'
import { startParts } from '../support/start-parts.js'
import { type Cluster, type ClusterOptions, startCluster } from './cluster.js'

export interface ChatClusterOptions extends Omit<ClusterOptions, 'channels'> {
  /** Between the chunks of a stream. */
  readonly paceMs?: number
  /** Laid over the channel of the chats, e.g. its models. */
  readonly channel?: object
  /** Further ones. */
  readonly channels?: readonly object[]
}

/** A cluster with a simulated upstream for chats, which ends with it. */
export interface ChatCluster extends Cluster {
  readonly simulator: P1Simulator
}

export function startChatCluster(options: ChatClusterOptions = {}): Promise<ChatCluster> {
  const { paceMs = 0, channel, channels = [], ...rest } = options
  return startParts(async (closedAtLast) => {
    const simulator = closedAtLast(await startP1Simulator({ apiKey: UPSTREAM_KEY, paceMs }))
    const cluster = await startCluster({ ...rest, channels: [p1Channel('chat', simulator, channel), ...channels] })
    return { ...closedAtLast(cluster), simulator }
  })
}
