import type { KeyLimits } from '../../config/gateway-config.js'
import { MINUTE_LIMIT_NAMES, MINUTE_LIMITS, type MinuteLimitName } from './limit-names.js'
import type { WindowState } from './limit-windows.js'

/** What is known of a window, if it is open. */
export type WindowLookup = (name: MinuteLimitName) => WindowState | undefined

const MESSAGES_PATH = /^\/v1\/messages(?:\/|$)/

/** The messages family has no word for audio. */
const MESSAGES_NAMES: ReadonlySet<MinuteLimitName> = new Set(['requestsPerMinute', 'tokensPerMinute'])

/** Writes the rate limit headers of a path's family into the headers of an answer. */
export function writeLimitHeaders(
  headers: Record<string, string>,
  path: string,
  limits: KeyLimits,
  stateOf: WindowLookup,
): void {
  const isMessages = MESSAGES_PATH.test(path)
  for (const name of MINUTE_LIMIT_NAMES) {
    const limit = limits[name]
    if (limit === undefined || (isMessages && !MESSAGES_NAMES.has(name))) continue
    const state = stateOf(name)
    const word = MINUTE_LIMITS[name].headerWord
    const remaining = String(remainingOf(name, limit, state))
    if (isMessages) {
      headers[`anthropic-ratelimit-${word}-limit`] = String(limit)
      headers[`anthropic-ratelimit-${word}-remaining`] = remaining
      headers[`anthropic-ratelimit-${word}-reset`] = instant(resetMsOf(state))
    } else {
      headers[`x-ratelimit-limit-${word}`] = String(limit)
      headers[`x-ratelimit-remaining-${word}`] = remaining
      headers[`x-ratelimit-reset-${word}`] = upstreamDuration(resetMsOf(state))
    }
  }
}

/** What is left of a limit, in its own unit. */
export function remainingOf(name: MinuteLimitName, limit: number, state: WindowState | undefined): number {
  if (state === undefined) return limit
  return Math.max(0, Math.floor((state.allowed - state.used) / MINUTE_LIMITS[name].pointsPerUnit))
}

export const resetMsOf = (state: WindowState | undefined): number =>
  state === undefined ? 0 : Math.max(0, Math.ceil(state.endsAtMs - performance.now()))

/** As the upstream spells it: `250ms`, `12s`, `1m0s`. */
export function upstreamDuration(milliseconds: number): string {
  if (milliseconds <= 0) return '0s'
  if (milliseconds < 1000) return `${milliseconds}ms`
  const seconds = Math.ceil(milliseconds / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/** RFC 3339, whole seconds, never too early. */
function instant(milliseconds: number): string {
  const seconds = Math.ceil((Date.now() + milliseconds) / 1000)
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
