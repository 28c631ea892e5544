import { Injectable } from '@nestjs/common'
import type { Kysely } from 'kysely'
import { Database, type DatabaseSchema } from '../storage/database.js'
import { deleteOldest } from '../storage/retention.js'
import { type PinnedResponse, ResponsePins } from './response-pins.js'

/** Of one statement, which takes 65,535 parameters. */
const MAXIMUM_ROWS = 1_000

/** Those that the owner has already stay as they are. In a transaction, either all are inserted or none. */
export async function insertPins(
  queries: Kysely<DatabaseSchema>,
  { ownerId, channelId, responseId, itemIds }: PinnedResponse,
): Promise<void> {
  const row = { owner_id: ownerId, response_id: responseId, channel_id: channelId, created_at_ms: Date.now() }
  const rows = [...new Set([responseId, ...itemIds])].map((id) => ({ ...row, id }))
  for (let start = 0; start < rows.length; start += MAXIMUM_ROWS) {
    await queries
      .insertInto('response_pin')
      .values(rows.slice(start, start + MAXIMUM_ROWS))
      .onConflict((conflict) => conflict.columns(['owner_id', 'id']).doNothing())
      .execute()
  }
}

/** Pins in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyResponsePins extends ResponsePins {
  constructor(private readonly database: Database) {
    super()
  }

  override async keep(response: PinnedResponse): Promise<void> {
    await this.database.run((queries) => insertPins(queries, response))
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

  override prune(beforeMs: number, limit: number): Promise<number> {
    const aging = { table: 'response_pin', timeColumn: 'created_at_ms' } as const
    return this.database.run((queries) => deleteOldest(queries, aging, beforeMs, limit))
  }
}
