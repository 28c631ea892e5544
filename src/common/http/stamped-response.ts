import { type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { findCall } from './call.js'

/**
 * Makes every response of a server carry its call's own headers (request id and such), whoever writes it: the relay,
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
    const stamp = findCall(this.req)?.answerHeaders
    if (stamp !== undefined && isHeaderObject(headers)) Object.assign(headers, stamp)
    else if (stamp !== undefined) for (const name in stamp) this.setHeader(name, stamp[name] ?? '')
    return plain.call(this, status, reason, headers)
  }
  Object.defineProperty(prototype, 'writeHead', { value: writeHead, writable: true, configurable: true })
}

type WriteHead = (this: ServerResponse, status: number, reason?: unknown, headers?: unknown) => ServerResponse

const isHeaderObject = (value: unknown): value is OutgoingHttpHeaders =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
