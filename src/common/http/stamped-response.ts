import { type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { findCall } from './call.js'
import { explanationOf } from './explanation.js'

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
      const explanation = call.isExplained ? explanationOf(call) : undefined
      if (isHeaderObject(headers)) Object.assign(headers, call.answerHeaders, explanation)
      else setHeaders(this, { ...call.answerHeaders, ...explanation })
    }
    return plain.call(this, status, reason, headers)
  }
  Object.defineProperty(prototype, 'writeHead', { value: writeHead, writable: true, configurable: true })
}

type WriteHead = (this: ServerResponse, status: number, reason?: unknown, headers?: unknown) => ServerResponse

function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

const isHeaderObject = (value: unknown): value is OutgoingHttpHeaders =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
