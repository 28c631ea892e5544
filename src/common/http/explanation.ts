import type { Call } from './call.js'

/** Headers of an answer that went to an upstream: who gave it, at which attempt, and what the gateway took itself. */
export interface Explanation {
  'x-gateway-channel': string
  'x-gateway-attempts': string
  'x-gateway-overhead-ms': string
}

/** How the answer to a call came about, as far as its head can say; undefined when no upstream was asked. */
export function explanationOf({ log, startedAtMs }: Call): Explanation | undefined {
  const { channelId, tried, receiveMs, upstreamMs, openWaitMs } = log
  if (channelId === undefined || tried.length === 0) return undefined
  const overheadMs = Math.max(0, performance.now() - startedAtMs - receiveMs - upstreamMs - openWaitMs)
  return {
    'x-gateway-channel': channelId,
    'x-gateway-attempts': String(tried.length),
    'x-gateway-overhead-ms': String(Math.round(overheadMs * 100) / 100),
  }
}
