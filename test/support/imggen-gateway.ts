import {
  type ImggenSimulator,
  type ImggenSimulatorOptions,
  startImggenSimulator,
} from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { TEST_KEY, type TestGateway } from './gateway.js'
import { type ProviderLab, type ProviderLabOptions, startProviderLab } from './provider-gateways.js'

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
