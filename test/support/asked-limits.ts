import type { LimitsAnswer } from '../../src/account/limits.service.js'
import { sendRaw } from './raw-http.js'

/** `GET /v1/limits` of a key. */
export async function askLimits(url: string, key: string): Promise<LimitsAnswer> {
  const { text } = await sendRaw(url, {
    method: 'GET',
    path: '/v1/limits',
    headers: { authorization: `Bearer ${key}` },
  })
  return JSON.parse(text) as LimitsAnswer
}
