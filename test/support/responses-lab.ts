import { newKey } from '../../src/auth/key-table.js'
import { type RawAnswer, sendRaw, TEST_KEY, type TestGateway } from './gateway.js'

export const RESPONSES_PATH = '/v1/responses'
/** Of the catalogue, natively served by the simulator. */
export const RESPONSES_MODEL = 'gpt-5-mini'

export const OTHER_KEY = newKey()
/** With a limit of tokens. */
export const LIMITED_KEY = newKey()
export const RESPONSES_KEYS = [
  { id: 'test', key: TEST_KEY },
  { id: 'other', key: OTHER_KEY },
  { id: 'limited', key: LIMITED_KEY, limits: { tokensPerMinute: 1000 } },
]

const headersOf = (key: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${key}` })

/** Sends a body to `/v1/responses`, or to a path of the same family. */
export const sendResponse = (
  { url }: TestGateway,
  body: object,
  key = TEST_KEY,
  path = RESPONSES_PATH,
): Promise<RawAnswer> => sendRaw(url, { path, body: JSON.stringify(body), headers: headersOf(key) })

/** Asks for what stands below `/v1/responses`: an id, with more of a path and a query. */
export const askResponse = ({ url }: TestGateway, method: string, path: string, key = TEST_KEY): Promise<RawAnswer> =>
  sendRaw(url, { method, path: `${RESPONSES_PATH}/${path}`, headers: headersOf(key) })
