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
