import { type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { type RequestContext, type TranslationRecord, findContext } from '../core/request-context.js'
import { dropUpstreamLimits } from '../limits/limit-errors.js'
import { addHeaders, exposeHeaders, isForPage } from './cors.js'

/**
 * Adds the headers of an answer that went to an upstream: who gave it, at which attempt, and what the gateway took itself,
 * as far as the head can say. None where no upstream was asked.
 */
export function writeExplainHeaders({ log, startedAtMs }: RequestContext, headers: Record<string, unknown>): void {
  const { channelId, attempts, receiveMs, upstreamMs, openWaitMs } = log
  if (channelId === undefined || attempts.length === 0) return
  const overheadMs = Math.max(0, performance.now() - startedAtMs - receiveMs - upstreamMs - openWaitMs)
  headers['x-gateway-channel'] = channelId
  headers['x-gateway-attempts'] = String(attempts.length)
  headers['x-gateway-overhead-ms'] = String(Math.round(overheadMs * 100) / 100)
}

/** Adds what became of a request in another dialect; whatever the operator hides of channels, a caller must know of this. */
function writeTranslationHeaders(
  { dialects, approximated, dropped }: TranslationRecord,
  headers: Record<string, unknown>,
): void {
  headers['x-gateway-dialect'] = dialects
  if (approximated !== undefined) headers['x-gateway-approximated'] = approximated
  if (dropped !== undefined) headers['x-gateway-dropped'] = dropped
}

/**
 * Makes every response of a server carry its call's own headers (request id and such) and what explains it, for every writer: the
 * relay, the exception filter, Nest, the documentation pages. They are added where the head is written, because Node takes a
 * slower path for a response that had single headers set before.
 */
export function stampResponses(prototype: object): void {
  const plain = Object.getOwnPropertyDescriptor(ServerResponse.prototype, 'writeHead')?.value as WriteHead
  const writeHead = function (
    this: ServerResponse,
    status: number,
    reason?: unknown,
    headers: unknown = reason,
  ): ServerResponse {
    const call = findContext(this.req)
    if (call !== undefined) {
      const stamped: OutgoingHttpHeaders = isHeaderObject(headers) ? headers : {}
      if (call.quota !== undefined) dropUpstreamLimits(stamped)
      const vary = this.getHeader('vary')
      if (vary !== undefined) stamped.vary ??= String(vary)
      addHeaders(stamped, call.responseHeaders)
      call.quota?.addHeaders(stamped)
      if (call.isExplained) writeExplainHeaders(call, stamped)
      const { translation } = call.log
      if (translation !== undefined) writeTranslationHeaders(translation, stamped)
      if (isForPage(stamped)) exposeHeaders(stamped, this.getHeaderNames())
      if (stamped !== headers) setHeaders(this, stamped)
    }
    return plain.call(this, status, reason, headers)
  }
  Object.defineProperty(prototype, 'writeHead', { value: writeHead, writable: true, configurable: true })
}

type WriteHead = (this: ServerResponse, status: number, reason?: unknown, headers?: unknown) => ServerResponse

function setHeaders(response: ServerResponse, headers: OutgoingHttpHeaders): void {
  for (const [name, value = ''] of Object.entries(headers)) response.setHeader(name, value)
}

const isHeaderObject = (value: unknown): value is OutgoingHttpHeaders =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
