import { type P1SimulatorOptions, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab, withLab } from './provider-gateways.js'

/** The key the gateway uses at the simulators; a canary that must never reach a caller. */
export const UPSTREAM_KEY = 'upstream-canary-key'

export type P1Gateway = ProviderLab<Simulator>

export interface P1GatewayOptions extends ProviderLabOptions {
  readonly simulator?: P1SimulatorOptions
}

export const p1Channel = (id: string, simulator: Simulator, overrides: object = {}): object => ({
  id,
  provider: 'p1',
  baseUrl: simulator.url,
  credentials: UPSTREAM_KEY,
  ...overrides,
})

export function startP1Gateway({ simulator, ...options }: P1GatewayOptions = {}): Promise<P1Gateway> {
  const start = (): Promise<Simulator> => startP1Simulator({ apiKey: UPSTREAM_KEY, ...simulator })
  return startProviderLab({ start, channel: p1Channel }, options)
}

export const withP1Gateway = (options: P1GatewayOptions, run: (lab: P1Gateway) => Promise<void>): Promise<void> =>
  withLab(startP1Gateway(options), run)
