import { type P1SimulatorOptions, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { type P2SimulatorOptions, startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { type P3SimulatorOptions, startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import { type P4SimulatorOptions, startP4Simulator } from '@multi-model-gateway/sandbox/p4/p4.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import type { SocketSimulator } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.js'

/** A gateway and the simulated upstreams behind it. */
export interface ProviderLab<Upstream> {
  readonly gateway: TestGateway
  readonly simulator: Upstream
  /** The simulator of the channel `second`; the same as `simulator` when there is only one channel. */
  readonly second: Upstream
  readonly close: () => Promise<void>
}

export interface ProviderLabOptions extends Omit<TestGatewayOptions, 'channels'> {
  /** Laid over every channel, e.g. `timeouts` or `modelMap`. */
  readonly channel?: object
  /** Adds a channel `second` of lower priority, on a simulator of its own. */
  readonly withSecond?: boolean
}

/** How the lab of one provider is set up. */
export interface LabPlan<Upstream> {
  readonly start: () => Promise<Upstream>
  readonly channel: (id: string, simulator: Upstream, overrides?: object) => object
  /** Further sections of the configuration, which may depend on where the simulators listen. */
  readonly sections?: (simulators: readonly Upstream[]) => object
}

/** A gateway whose channel `first` (and `second`, tried after it) leads to a simulator of its own. */
export async function startProviderLab<Upstream extends { close(): Promise<void> }>(
  { start, channel: channelFor, sections: sectionsFor = () => ({}) }: LabPlan<Upstream>,
  { channel, withSecond = false, sections, ...rest }: ProviderLabOptions,
): Promise<ProviderLab<Upstream>> {
  const simulator = await start()
  const second = withSecond ? await start() : simulator
  const channels = [channelFor('first', simulator, channel)]
  if (withSecond) channels.push(channelFor('second', second, { priority: 1, ...channel }))
  const gateway = await startGateway({
    channels,
    sections: { ...sectionsFor([simulator, second]), ...sections },
    ...rest,
  })
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

/** A lab for one test: marks of channels are forgotten with its gateway. Closed whatever happens. */
export async function withLab<Lab extends { close: () => Promise<void> }>(
  starting: Promise<Lab>,
  run: (lab: Lab) => Promise<void>,
): Promise<void> {
  const lab = await starting
  try {
    await run(lab)
  } finally {
    await lab.close()
  }
}

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
