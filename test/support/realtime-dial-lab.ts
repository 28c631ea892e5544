import { WebSocket } from 'ws'
import { startGateway, TEST_KEY, type TestGateway, type TestGatewayOptions } from './gateway.js'
import { type RealtimeUpstream, startRealtimeUpstream, type UpstreamUpgrade } from './realtime-upstream.js'
import { REALTIME_PATH } from './upgrade-client.js'

/** Gateways and the upstreams they dial, which each test starts as it needs them. */
export class RealtimeDialLab {
  readonly #closers: (() => Promise<void>)[] = []

  /** An upstream that answers upgrades so; without an answer it accepts them. */
  readonly upstreamThat = async (answer?: (upgrade: UpstreamUpgrade) => void): Promise<RealtimeUpstream> => {
    const upstream = await startRealtimeUpstream(answer)
    this.#closers.push(() => upstream.close())
    return upstream
  }

  readonly gatewayTo = async (
    channels: readonly object[],
    options: Partial<TestGatewayOptions> = {},
  ): Promise<TestGateway> => {
    const gateway = await startGateway({ channels, ...options })
    this.#closers.push(() => gateway.close())
    return gateway
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
  }
}

/** A client whose request id is `mine`. */
export const connectRealtime = (gateway: TestGateway): WebSocket =>
  new WebSocket(gateway.url.replace('http', 'ws') + REALTIME_PATH, [], {
    headers: { authorization: `Bearer ${TEST_KEY}`, 'x-request-id': 'mine' },
  })

/** Leaves an upgrade without an answer. */
export const holds = (): void => undefined

/** How many connections the gateway has with its clients. */
export const connectionsOf = (gateway: TestGateway): Promise<number> =>
  new Promise((resolve) => {
    gateway.server.getConnections((_error, count) => {
      resolve(count)
    })
  })
