import { startP3Simulator, type P3SimulatorOptions } from '../../src/sandbox/p3/p3.simulator.js'
import type { Simulator } from '../../src/sandbox/simulator-server.js'
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.js'
import { UPSTREAM_KEY } from './p1-gateway.js'

export interface P3Gateway {
  readonly gateway: TestGateway
  readonly simulator: Simulator
  /** The simulator of the channel `second`; the same as `simulator` when there is only one channel. */
  readonly second: Simulator
  readonly close: () => Promise<void>
}

export interface P3GatewayOptions extends Omit<TestGatewayOptions, 'channels'> {
  readonly simulator?: P3SimulatorOptions
  /** Laid over every channel, e.g. `timeouts` or `options`. */
  readonly channel?: object
  /** Adds a channel `second` of lower priority, on a simulator of its own. */
  readonly withSecond?: boolean
  /** Whether the gateway may fetch what the simulators link to, although they are private. Default true. */
  readonly fetchesLinks?: boolean
}

export const p3Channel = (id: string, simulator: Simulator, overrides: object = {}): object => ({
  id,
  provider: 'p3',
  baseUrl: simulator.url,
  credentials: UPSTREAM_KEY,
  ...overrides,
})

/** A gateway whose channel `first` (and `second`, tried after it) leads to a P3 simulator. */
export async function startP3Gateway(options: P3GatewayOptions = {}): Promise<P3Gateway> {
  const { simulator: simulatorOptions, channel, withSecond = false, fetchesLinks = true, sections, ...rest } = options
  const simulator = await startP3Simulator({ apiKey: UPSTREAM_KEY, ...simulatorOptions })
  const second = withSecond ? await startP3Simulator({ apiKey: UPSTREAM_KEY, ...simulatorOptions }) : simulator
  const channels = [p3Channel('first', simulator, channel)]
  if (withSecond) channels.push(p3Channel('second', second, { priority: 1, ...channel }))
  const allow = fetchesLinks ? [simulator, second].map(({ url }) => new URL(url).host) : []
  const gateway = await startGateway({ channels, sections: { ssrf: { allow }, ...sections }, ...rest })
  return {
    gateway,
    simulator,
    second,
    close: async () => {
      await gateway.close()
      await simulator.close()
      if (withSecond) await second.close()
    },
  }
}

export const P3_MODEL = 'speech-02-hd'

/** A speech request to P3 as JSON text. */
export const p3Text = (input: string, more: object = {}): string =>
  JSON.stringify({ model: P3_MODEL, input, voice: 'alloy', ...more })
