import { startP1Simulator, type P1SimulatorOptions } from '../../src/sandbox/p1/p1.simulator.js'
import type { Simulator } from '../../src/sandbox/simulator-server.js'
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.js'

/** The key the gateway uses at the simulators; a canary that must never reach a caller. */
export const UPSTREAM_KEY = 'upstream-canary-key'

export interface P1Gateway {
  readonly gateway: TestGateway
  readonly simulator: Simulator
  /** The simulator of the channel `second`; the same as `simulator` when there is only one channel. */
  readonly second: Simulator
  readonly close: () => Promise<void>
}

export interface P1GatewayOptions extends Omit<TestGatewayOptions, 'channels'> {
  readonly simulator?: P1SimulatorOptions
  /** Laid over every channel, e.g. `timeouts` or `modelMap`. */
  readonly channel?: object
  /** Adds a channel `second` of lower priority, on a simulator of its own. */
  readonly withSecond?: boolean
}

export const p1Channel = (id: string, simulator: Simulator, overrides: object = {}): object => ({
  id,
  provider: 'p1',
  baseUrl: simulator.url,
  credentials: UPSTREAM_KEY,
  ...overrides,
})

/** A gateway whose channel `first` (and `second`, tried after it) leads to a P1 simulator. */
export async function startP1Gateway(options: P1GatewayOptions = {}): Promise<P1Gateway> {
  const { simulator: simulatorOptions, channel, withSecond = false, ...rest } = options
  const simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY, ...simulatorOptions })
  const second = withSecond ? await startP1Simulator({ apiKey: UPSTREAM_KEY, ...simulatorOptions }) : simulator
  const channels = [p1Channel('first', simulator, channel)]
  if (withSecond) channels.push(p1Channel('second', second, { priority: 1, ...channel }))
  const gateway = await startGateway({ channels, ...rest })
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

/** The channel that is tried next is the first one again: marks are forgotten with the gateway, so tests restart it. */
export async function withP1Gateway(options: P1GatewayOptions, run: (lab: P1Gateway) => Promise<void>): Promise<void> {
  const lab = await startP1Gateway(options)
  try {
    await run(lab)
  } finally {
    await lab.close()
  }
}
