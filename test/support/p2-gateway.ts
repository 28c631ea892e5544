import { type P2SimulatorOptions, startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import type { SocketSimulator } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab, withLab } from './provider-gateways.js'

/** The pair the gateway uses at the simulators; canaries that must never reach a caller. */
export const P2_APP_ID = 'canary-app-4711'
export const P2_ACCESS_TOKEN = 'canary-token-0815'
export const P2_UPSTREAM_KEY = `${P2_APP_ID}|${P2_ACCESS_TOKEN}`

export const P2_MODEL = 'seed-tts-1.1'

export type P2Gateway = ProviderLab<SocketSimulator>

export interface P2GatewayOptions extends ProviderLabOptions {
  readonly simulator?: P2SimulatorOptions
}

export const p2Channel = (id: string, simulator: SocketSimulator, overrides: object = {}): object => ({
  id,
  provider: 'p2',
  baseUrl: simulator.url,
  credentials: P2_UPSTREAM_KEY,
  models: [P2_MODEL],
  ...overrides,
})

export function startP2Gateway({ simulator, ...options }: P2GatewayOptions = {}): Promise<P2Gateway> {
  const start = (): Promise<SocketSimulator> => startP2Simulator({ apiKey: P2_UPSTREAM_KEY, ...simulator })
  return startProviderLab({ start, channel: p2Channel }, options)
}

export const withP2Gateway = (options: P2GatewayOptions, run: (lab: P2Gateway) => Promise<void>): Promise<void> =>
  withLab(startP2Gateway(options), run)

/** A speech request to P2 as JSON text. */
export const p2Text = (input: string, more: object = {}): string =>
  JSON.stringify({ model: P2_MODEL, input, voice: 'alloy', ...more })
