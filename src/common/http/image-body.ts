import type { IncomingMessage, ServerResponse } from 'node:http'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../../config/config-store.js'
import { GatewayError } from '../errors/gateway-error.js'
import { BytesInFlight, type Reservation } from './bytes-in-flight.js'
import { callOf } from './call.js'

/** A body on its way now is gone in seconds: the time to receive it and to hand it to an upstream. */
const RETRY_AFTER_SECONDS = 5

/**
 * Admits JSON bodies that carry Base64 images (design: Reliability rules, Admission). They are large and stay in memory
 * until the upstream has them, so only so many bytes of them may be under way at once.
 */
@Injectable()
export class ImageBodies {
  private readonly inFlight = new BytesInFlight()

  constructor(private readonly store: ConfigStore) {}

  get maximumBytes(): number {
    return this.store.current.limits.imageBodyBytes
  }

  /**
   * Reserves what the request will take, from its headers alone and for as long as it is worked on.
   * Throws `overloaded` when there is no room.
   */
  admit(request: IncomingMessage, response: ServerResponse): Reservation {
    const { imageBodiesInFlightBytes } = this.store.current.limits
    const reservation = this.inFlight.reserve(announcedBytes(request, this.maximumBytes), imageBodiesInFlightBytes)
    if (reservation === undefined) {
      throw new GatewayError('overloaded', 'Too many images are being received at the moment.', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      })
    }
    const release = (): void => {
      reservation.release()
    }
    response.once('close', release)
    // A pipelined request that waits for its turn has a response without a socket, which never closes.
    callOf(request).departure.onLeave(release)
    return reservation
  }
}

/** A body of unknown length may become as long as the route allows. */
function announcedBytes({ headers }: IncomingMessage, maximumBytes: number): number {
  const contentLength = headers['content-length']
  if (contentLength !== undefined) return Number(contentLength)
  return headers['transfer-encoding'] === undefined ? 0 : maximumBytes
}
