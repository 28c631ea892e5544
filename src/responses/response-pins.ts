import { Inject, Injectable } from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { Retention } from '../storage/retention.js'

/** As long as the upstream keeps responses. */
const RETENTION_MS = 30 * 24 * 3_600_000
const BATCH_ROWS = 1_000

/** A response that an upstream keeps. */
export interface KeptResponse {
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
  abstract keep(response: KeptResponse): Promise<void>
  /** The channels of those ids that the owner has. */
  abstract channelsOf(ownerId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** A response and its items. */
  abstract forget(ownerId: string, responseId: string): Promise<void>
  /** Deletes at most so many rows older than that; returns how many there were. */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}

/** Pins in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyResponsePins extends ResponsePins {
  constructor(private readonly database: Database) {
    super()
  }

  override async keep({ ownerId, channelId, responseId, itemIds }: KeptResponse): Promise<void> {
    const row = { owner_id: ownerId, response_id: responseId, channel_id: channelId, created_at_ms: Date.now() }
    const rows = [...new Set([responseId, ...itemIds])].map((id) => ({ ...row, id }))
    await this.database.run((queries) =>
      queries
        .insertInto('response_pin')
        .values(rows)
        .onConflict((conflict) => conflict.columns(['owner_id', 'id']).doNothing())
        .execute(),
    )
  }

  override async channelsOf(ownerId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.database.run((queries) =>
      queries
        .selectFrom('response_pin')
        .select(['id', 'channel_id'])
        .where('owner_id', '=', ownerId)
        .where('id', 'in', ids)
        .execute(),
    )
    return new Map(rows.map((row) => [row.id, row.channel_id]))
  }

  override async forget(ownerId: string, responseId: string): Promise<void> {
    await this.database.run((queries) =>
      queries
        .deleteFrom('response_pin')
        .where('owner_id', '=', ownerId)
        .where('response_id', '=', responseId)
        .execute(),
    )
  }

  override async prune(beforeMs: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.database.run((queries) =>
      queries
        .deleteFrom('response_pin')
        .where(({ eb, refTuple, selectFrom }) =>
          eb(
            refTuple('owner_id', 'id'),
            'in',
            selectFrom('response_pin')
              .select(['owner_id', 'id'])
              .where('created_at_ms', '<', beforeMs)
              .orderBy('created_at_ms')
              .limit(limit)
              .$asTuple('owner_id', 'id'),
          ),
        )
        .executeTakeFirst(),
    )
    return Number(numDeletedRows)
  }
}

/** Deletes the pins of responses that no upstream keeps any more. */
@Injectable()
export class ResponsePinRetention extends Retention {
  constructor(database: Database, pins: ResponsePins, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => pins.prune(Date.now() - RETENTION_MS, limit)
    super(database, { prune, batchRows: BATCH_ROWS, failure: 'old pins of responses could not be deleted' }, logger)
  }
}
