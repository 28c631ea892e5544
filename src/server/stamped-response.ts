import { type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { findCall } from '../core/request-context.js'
import { dropUpstreamLimits } from '../limits/limit-errors.js'
import { explain } from './explanation.js'

/**
 * Makes every response of a server carry its call's own headers (request id and such) and what explains it, whoever writes it: the relay,
 * the exception filter, Nest, the documentation pages. They are added where the head is written, because Node takes a
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
    const call = findCall(this.req)
    if (call !== undefined) {
      const stamped: OutgoingHttpHeaders = isHeaderObject(headers) ? headers : {}
      if (call.allowance !== undefined) dropUpstreamLimits(stamped)
      Object.assign(stamped, call.answerHeaders)
      if (call.isExplained) explain(call, stamped)
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
