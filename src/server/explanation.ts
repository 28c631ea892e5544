import type { Call } from '../core/request-context.js'

/**
 * Adds the headers of an answer that went to an upstream: who gave it, at which attempt, and what the gateway took itself,
 * as far as the head can say. None where no upstream was asked.
 */
export function explain({ log, startedAtMs }: Call, headers: Record<string, unknown>): void {
  const { channelId, tried, receiveMs, upstreamMs, openWaitMs } = log
  if (channelId === undefined || tried.length === 0) return
  const overheadMs = Math.max(0, performance.now() - startedAtMs - receiveMs - upstreamMs - openWaitMs)
  headers['x-gateway-channel'] = channelId
  headers['x-gateway-attempts'] = String(tried.length)
  headers['x-gateway-overhead-ms'] = String(Math.round(overheadMs * 100) / 100)
}
