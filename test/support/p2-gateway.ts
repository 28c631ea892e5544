import { type P2SimulatorOptions, startP2Simulator } from '../../src/sandbox/p2/p2.simulator.js'
import type { SocketSimulator } from '../../src/sandbox/socket-protocol.js'
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.js'

/** The pair the gateway uses at the simulators; canaries that must never reach a caller. */
export const P2_APP_ID = 'canary-app-4711'
export const P2_ACCESS_TOKEN = 'canary-token-0815'
export const P2_UPSTREAM_KEY = `${P2_APP_ID}|${P2_ACCESS_TOKEN}`

export const P2_MODEL = 'seed-tts-1.1'

export interface P2Gateway {
  readonly gateway: TestGateway
  readonly simulator: SocketSimulator
  /** The simulator of the channel `second`; the same as `simulator` when there is only one channel. */
  readonly second: SocketSimulator
  readonly close: () => Promise<void>
}

export interface P2GatewayOptions extends Omit<TestGatewayOptions, 'channels'> {
  readonly simulator?: P2SimulatorOptions
  /** Laid over every channel, e.g. `timeouts` or `options`. */
  readonly channel?: object
  /** Adds a channel `second` of lower priority, on a simulator of its own. */
  readonly withSecond?: boolean
}

export const p2Channel = (id: string, simulator: SocketSimulator, overrides: object = {}): object => ({
  id,
  provider: 'p2',
  baseUrl: simulator.url,
  credentials: P2_UPSTREAM_KEY,
  models: [P2_MODEL],
  ...overrides,
})

/** A gateway whose channel `first` (and `second`, tried after it) leads to a P2 simulator. */
export async function startP2Gateway(options: P2GatewayOptions = {}): Promise<P2Gateway> {
  const { simulator: simulatorOptions, channel, withSecond = false, ...rest } = options
  const start = (): Promise<SocketSimulator> => startP2Simulator({ apiKey: P2_UPSTREAM_KEY, ...simulatorOptions })
  const simulator = await start()
  const second = withSecond ? await start() : simulator
  const channels = [p2Channel('first', simulator, channel)]
  if (withSecond) channels.push(p2Channel('second', second, { priority: 1, ...channel }))
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

export async function withP2Gateway(options: P2GatewayOptions, run: (lab: P2Gateway) => Promise<void>): Promise<void> {
  const lab = await startP2Gateway(options)
  try {
    await run(lab)
  } finally {
    await lab.close()
  }
}

/** A speech request to P2 as JSON text. */
export const p2Text = (input: string, more: object = {}): string =>
  JSON.stringify({ model: P2_MODEL, input, voice: 'alloy', ...more })
