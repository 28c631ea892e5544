import { randomBytes } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import type { ResponseStore } from './responses-store.js'

/**
 * The response headers of P1 (section "Response headers" of the audio notes). Some are for the account's owner only, so
 * a test can prove that a relay drops them.
 */
export function p1Headers(exchange: Exchange, options: { tokenLimits: boolean }): Record<string, string> {
  const headers: Record<string, string> = {
    'x-request-id': `req_${randomBytes(16).toString('hex')}`,
    'openai-processing-ms': String(Math.max(1, Math.round(performance.now() - exchange.request.arrivedAtMs))),
    'openai-version': '2020-10-01',
    'openai-organization': 'org-simulated',
    'openai-project': 'proj_simulated',
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '9999',
    'x-ratelimit-reset-requests': '6ms',
    'set-cookie': '__cf_bm=simulated; path=/; HttpOnly; Secure; SameSite=None',
    'strict-transport-security': 'max-age=31536000; includeSubDomains; preload',
    'x-content-type-options': 'nosniff',
    'cf-ray': '9a0000000000-SIM',
    server: 'cloudflare',
  }
  if (!options.tokenLimits) return headers
  return {
    ...headers,
    'x-ratelimit-limit-tokens': '600000',
    'x-ratelimit-remaining-tokens': '599978',
    'x-ratelimit-reset-tokens': '2ms',
  }
}

/** What the P1 simulator remembers between requests, and how strict it is. */
export interface P1Context {
  /** The only accepted key; undefined accepts every key but `bad`. */
  readonly apiKey: string | undefined
  /** Tolerates unknown top-level chat fields instead of answering 400. */
  readonly acceptUnknownFields: boolean
  /** What transcription by token takes for a minute of audio. */
  readonly audioTokensPerMinute: number
  /** Spoken answers that can be referred to, with their expiry in Unix seconds. */
  readonly audioAnswers: Map<string, number>
  /** What a response in the background takes. */
  readonly backgroundMs: number
  /** Responses that can be read and continued. */
  readonly responses: ResponseStore
}
