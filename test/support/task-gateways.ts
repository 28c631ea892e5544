import { rm } from 'node:fs/promises'
import {
  type ImggenSimulator,
  type ImggenSimulatorOptions,
  startImggenSimulator,
} from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import {
  startVidgenSimulator,
  type VidgenAccess,
  type VidgenSimulator,
  type VidgenSimulatorOptions,
} from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { Database } from '../../src/storage/database.js'
import { CALLBACK_SECRET, CallbackReceiver } from './callback-lab.js'
import { TEST_KEY, type TestGateway } from './gateway.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab } from './provider-gateways.js'
import { type HoldingProxy, startHoldingProxy } from './proxies.js'
import { dataDirectory as newDataDirectory } from './stores.js'

/** The only secret that the simulators accept. */
export const IMGGEN_SECRET = 'mj-secret-canary-77'

export type ImggenGateway = ProviderLab<ImggenSimulator>

export interface ImggenGatewayOptions extends ProviderLabOptions {
  readonly simulator?: ImggenSimulatorOptions
}

/** Tasks stand still until a test moves them, unless it says otherwise. */
export function startImggenGateway({ simulator, ...options }: ImggenGatewayOptions = {}): Promise<ImggenGateway> {
  const start = (): Promise<ImggenSimulator> =>
    startImggenSimulator({ apiKey: IMGGEN_SECRET, stepMs: 'manual', ...simulator })
  const channel = (id: string, { url }: ImggenSimulator, overrides: object = {}): object => ({
    id,
    provider: 'imggen',
    baseUrl: url,
    credentials: IMGGEN_SECRET,
    ...overrides,
  })
  return startProviderLab({ start, channel }, options)
}

export interface ImageAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Record<string, unknown>
}

export const imagePath = (id: string, question = 'fetch'): string => `/imggen/task/${id}/${question}`

/** Asks the gateway as a caller does. */
export async function askForImage(
  { url }: Pick<TestGateway, 'url'>,
  path: string,
  key: string | undefined = TEST_KEY,
): Promise<ImageAnswer> {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as ImageAnswer['body'] }
}

/** What the simulators accept, and the gateway signs with; canaries that must never reach a caller. */
export const VIDGEN_ACCESS = { accessKey: 'access-canary-41', secretKey: 'secret-canary-42' } as const
export const VIDGEN_CREDENTIALS = `${VIDGEN_ACCESS.accessKey}|${VIDGEN_ACCESS.secretKey}`

/** A second caller's key. */
export const OTHER_KEY = 'other-gateway-key'
const KEYS = [
  { id: 'test', key: TEST_KEY },
  { id: 'other', key: OTHER_KEY },
]

/** Longer than any suite: tasks are polled only by reads. */
export const NEVER_POLLED = { pollIntervalMs: 3_600_000 }
export const POLLED_OFTEN = { pollIntervalMs: 20 }

export interface VidgenGateway extends ProviderLab<VidgenSimulator> {
  /** A caller's server, which callbacks may go to. */
  readonly receiver: CallbackReceiver
  /** Between the gateway and the simulator of the first channel. */
  readonly proxy: HoldingProxy
  readonly dataDirectory: string
}

export interface VidgenGatewayOptions extends ProviderLabOptions {
  /** Who may call the simulators; `anyone` = every bearer but `bad`. Default: the channel's pair of keys. */
  readonly access?: VidgenAccess | 'anyone'
  /** Tasks stand still until a test moves them, unless it says otherwise. */
  readonly simulator?: VidgenSimulatorOptions
  /** Laid over the second channel alone. */
  readonly secondChannel?: object
  readonly tasks?: object
  readonly callbacks?: object
  /** Whether callbacks may go to the receiver, although it is private. Default true. */
  readonly exempt?: boolean
}

export const vidgenChannel = (id: string, { url }: { readonly url: string }, overrides: object = {}): object => ({
  id,
  provider: 'vidgen',
  baseUrl: url,
  credentials: VIDGEN_CREDENTIALS,
  ...overrides,
})

/** A gateway with a store of its own that is open, as it is when an operator's gateway begins to listen. */
export async function startVidgenGateway({
  access = VIDGEN_ACCESS,
  simulator,
  secondChannel,
  tasks = NEVER_POLLED,
  callbacks,
  exempt = true,
  sections,
  ...options
}: VidgenGatewayOptions = {}): Promise<VidgenGateway> {
  const receiver = await CallbackReceiver.start()
  const dataDirectory = options.dataDirectory ?? (await newDataDirectory())
  const proxies = new Map<VidgenSimulator, HoldingProxy>()
  const start = async (): Promise<VidgenSimulator> => {
    const started = await startVidgenSimulator(access === 'anyone' ? undefined : access, {
      taskMs: 'manual',
      ...simulator,
    })
    proxies.set(started, await startHoldingProxy(started.port))
    return started
  }
  const proxyOf = (started: VidgenSimulator): HoldingProxy => proxies.get(started) as HoldingProxy
  const channel = (id: string, started: VidgenSimulator, overrides?: object): object =>
    vidgenChannel(id, proxyOf(started), { ...overrides, ...(id === 'second' ? secondChannel : {}) })
  const lab = await startProviderLab(
    { start, channel },
    {
      keys: KEYS,
      ...options,
      dataDirectory,
      sections: {
        ssrf: { allow: exempt ? [receiver.host] : [] },
        tasks,
        callbacks: { secret: CALLBACK_SECRET, scheduleMs: [0, 10, 10], ...callbacks },
        ...sections,
      },
    },
  )
  await lab.gateway.application.get(Database).open()
  return {
    ...lab,
    receiver,
    proxy: proxyOf(lab.simulator),
    dataDirectory,
    close: async () => {
      await lab.close()
      for (const proxy of proxies.values()) await proxy.close()
      await receiver.close()
      await rm(dataDirectory, { recursive: true })
    },
  }
}
