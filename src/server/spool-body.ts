import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../core/errors.js'
import { freeBytes } from '../core/free-bytes.js'
import type { ArrivingBody } from '../core/quota.js'
import { clientDisconnected, countReceived } from '../core/request-context.js'
import { SpooledFile } from '../core/spooled-file.js'
import { type BodyLimits, bodyTooLarge, memoryFull, onEviction } from './read-body.js'

interface SpoolLimits extends BodyLimits {
  /** Counts what is kept in memory meanwhile. */
  readonly room?: ArrivingBody | undefined
}

/**
 * Reads a body as a file, no faster than the disk takes it. After a refusal nothing is left on disk; what is still coming
 * is discarded by the server.
 * @throws GatewayError `payload_too_large`, `request_timeout`, `caller_left`, `overloaded`, `internal`
 */
export async function spoolBody(request: IncomingMessage, limits: SpoolLimits): Promise<SpooledFile> {
  const spool = new SpooledFile()
  try {
    await fill(spool, request, limits)
    await spool.finish().catch(storageFailed)
    limits.room?.end(spool.heldBytes)
    return spool
  } catch (error) {
    limits.room?.end(0)
    await spool.remove()
    throw error
  }
}

function fill(
  spool: SpooledFile,
  request: IncomingMessage,
  { maximumBytes, timeoutMs, room }: SpoolLimits,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0
    const settle = (outcome: () => void): void => {
      clearTimeout(timer)
      request.removeListener('data', onData).removeListener('end', onEnd).removeListener('close', onClose)
      countReceived(request, received)
      outcome()
    }
    const fail = (error: Error): void => {
      settle(() => {
        reject(error)
      })
    }
    const onData = (chunk: Buffer): void => {
      received += chunk.length
      if (received > maximumBytes) {
        fail(bodyTooLarge(maximumBytes))
        return
      }
      if (room?.arrived(chunk.length) === false) {
        fail(memoryFull())
        return
      }
      request.pause()
      const goOn = (): void => {
        freeBytes(chunk)
        request.resume()
      }
      spool
        .append(chunk)
        .catch(storageFailed)
        .then(goOn, (error: unknown) => {
          fail(error as Error)
        })
    }
    const onEnd = (): void => {
      settle(resolve)
    }
    const onClose = (): void => {
      fail(clientDisconnected())
    }
    const timer = setTimeout(() => {
      fail(new GatewayError('request_timeout', `The request body did not arrive within ${timeoutMs} ms.`))
    }, timeoutMs)
    onEviction(room, fail)
    request.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

export function storageFailed(cause: unknown): never {
  throw new GatewayError('internal', 'The upload could not be stored.', { cause })
}
