import { type P3SimulatorOptions, startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { UPSTREAM_KEY } from './p1-gateway.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab } from './provider-gateways.js'

export type P3Gateway = ProviderLab<Simulator>

export interface P3GatewayOptions extends ProviderLabOptions {
  readonly simulator?: P3SimulatorOptions
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

export function startP3Gateway({
  simulator,
  fetchesLinks = true,
  ...options
}: P3GatewayOptions = {}): Promise<P3Gateway> {
  const start = (): Promise<Simulator> => startP3Simulator({ apiKey: UPSTREAM_KEY, ...simulator })
  const sections = (simulators: readonly Simulator[]): object => ({
    ssrf: { allow: fetchesLinks ? simulators.map(({ url }) => new URL(url).host) : [] },
  })
  return startProviderLab({ start, channel: p3Channel, sections }, options)
}

export const P3_MODEL = 'speech-02-hd'

/** A speech request to P3 as JSON text. */
export const p3Text = (input: string, more: object = {}): string =>
  JSON.stringify({ model: P3_MODEL, input, voice: 'alloy', ...more })
