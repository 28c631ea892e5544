import { Inject, Injectable } from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { Retention } from '../storage/retention.js'

/** As long as upstreams keep responses, and the gateway as they do. */
export const RESPONSE_RETENTION_MS = 30 * 24 * 3_600_000
const BATCH_ROWS = 1_000

/** A response that an upstream keeps. */
export interface PinnedResponse {
  readonly ownerId: string
  readonly channelId: string
  readonly responseId: string
  /** Of its output: a later request may refer to them. */
  readonly itemIds: readonly string[]
}

/**
 * Whose a kept response is, and which channel knows it; also the injection token. Ids are the upstream's: only the owner of one is told
 * that there is such a response. All methods reject with `GatewayError('overloaded')` while the store cannot be reached.
 */
export abstract class ResponsePins {
  abstract keep(response: PinnedResponse): Promise<void>
  /** The channels of those ids that the owner has. */
  abstract channelsOf(ownerId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** A response and its items. */
  abstract forget(ownerId: string, responseId: string): Promise<void>
  /** Deletes at most so many rows older than that; returns how many there were. */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}

/** Deletes the pins of responses that no upstream keeps any more. */
@Injectable()
export class ResponsePinRetention extends Retention {
  constructor(database: Database, pins: ResponsePins, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => pins.prune(Date.now() - RESPONSE_RETENTION_MS, limit)
    super(database, { prune, batchRows: BATCH_ROWS, failure: 'old pins of responses could not be deleted' }, logger)
  }
}
