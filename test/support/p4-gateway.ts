import { type P4SimulatorOptions, startP4Simulator } from '../../src/sandbox/p4/p4.simulator.js'
import { startGateway, type TestGatewayOptions } from './gateway.js'
import { type P1Gateway, UPSTREAM_KEY } from './p1-gateway.js'

export interface P4GatewayOptions extends Omit<TestGatewayOptions, 'channels'> {
  readonly simulator?: P4SimulatorOptions
  /** Laid over the channel, e.g. `modelMap`. */
  readonly channel?: object
}

/** A gateway whose only channel leads to a P4 simulator. */
export async function startP4Gateway(options: P4GatewayOptions = {}): Promise<P1Gateway> {
  const { simulator: simulatorOptions, channel, ...rest } = options
  const simulator = await startP4Simulator({ apiKey: UPSTREAM_KEY, ...simulatorOptions })
  const prefix = simulatorOptions?.mode === 'openai' ? '' : '/openai'
  const only = { id: 'p4', provider: 'p4', baseUrl: simulator.url + prefix, credentials: UPSTREAM_KEY, ...channel }
  const gateway = await startGateway({ channels: [only], ...rest })
  return {
    gateway,
    simulator,
    second: simulator,
    close: async () => {
      await gateway.close()
      await simulator.close()
    },
  }
}
