import { type P4SimulatorOptions, startP4Simulator } from '@multi-model-gateway/sandbox/p4/p4.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { UPSTREAM_KEY } from './p1-gateway.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab } from './provider-gateways.js'

export interface P4GatewayOptions extends ProviderLabOptions {
  readonly simulator?: P4SimulatorOptions
}

export function startP4Gateway({ simulator, ...options }: P4GatewayOptions = {}): Promise<ProviderLab<Simulator>> {
  const prefix = simulator?.mode === 'openai' ? '' : '/openai'
  const start = (): Promise<Simulator> => startP4Simulator({ apiKey: UPSTREAM_KEY, ...simulator })
  const channel = (id: string, { url }: Simulator, overrides: object = {}): object => ({
    id,
    provider: 'p4',
    baseUrl: url + prefix,
    credentials: UPSTREAM_KEY,
    ...overrides,
  })
  return startProviderLab({ start, channel }, options)
}
