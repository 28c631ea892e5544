import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Call, callOf } from '../core/request-context.js'
import type { MultipartField } from '../core/spooled-file.js'

/** Uploads come over slow lines; the server's own limit for a whole request is the same. */
export const UPLOAD_TIMEOUT_MS = 120_000

/** Receives a body; how long that took goes into the call's log. */
export async function timedReception<Result>(
  request: IncomingMessage,
  receive: () => Promise<Result> | Result,
): Promise<Result> {
  const startedAtMs = performance.now()
  try {
    return await receive()
  } finally {
    callOf(request).log.receiveMs += performance.now() - startedAtMs
  }
}

/**
 * Gives something back when the response is over, however it ended; may do so twice. A failure to is the operating
 * system's to clean up after, and must not end the process.
 */
export function releaseWhenDone(release: () => Promise<void>, call: Call, response: ServerResponse): void {
  const run = (): void => {
    release().catch((error: unknown) => {
      call.log.failure ??= error
    })
  }
  response.once('close', run)
  // A pipelined request that waits for its turn has a response without a socket, which never closes.
  call.departure.onLeave(run)
}

/** The fields of a form by name, on an object that inherits none. */
export function namedFields(fields: readonly MultipartField[]): Record<string, unknown> {
  const named: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const { name, value } of fields) named[name] = value
  return named
}
