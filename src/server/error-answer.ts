import type { IncomingMessage, ServerResponse } from 'node:http'
import type { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import { renderError } from '../dialects/error-format.js'

/** A client that still sends a body after it was refused is listened to this long, so that it can read the refusal. */
const REFUSED_UPLOAD_LINGER_MS = 10_000

/** Answers a call with an error in the dialect of its path, unless its answer has begun or nobody is left to read it. */
export function answerWithError(
  error: GatewayError,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  call.log.failure = error
  if (call.departure.left) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  const { status, headers, body } = renderError(error, call.path, call.requestId)
  response.writeHead(status, { ...headers, 'content-length': String(Buffer.byteLength(body)) })
  endAnswer(body, request, response)
}

/** Writes the body of an answer whose head is written, whether or not the request has been received to its end. */
export function endAnswer(body: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) response.end(body)
  else answerWhileListening(body, request, response)
}

/**
 * Answers a client that may still be sending. The answer is whole by its length, but it is ended only after the request:
 * Node closes a connection that is not kept alive as soon as its response ends, and the reset would overtake the answer.
 * A body without end must not keep the connection for ever.
 */
function answerWhileListening(body: string, request: IncomingMessage, response: ServerResponse): void {
  response.write(body)
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(() => {
    end()
    request.destroy()
  }, REFUSED_UPLOAD_LINGER_MS)
  // Shutdown must not wait for it.
  timer.unref()
  request.once('end', end).once('close', end).resume()
}
