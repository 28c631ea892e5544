import { Injectable } from '@nestjs/common'
import { sql } from 'kysely'
import { Database } from '../storage/database.js'
import { deleteOldest } from '../storage/retention.js'
import {
  type FoundResponse,
  type KeptConversation,
  type KeptItem,
  type KeptResponse,
  KeptResponses,
} from './kept-responses.js'

interface ItemRow {
  readonly id: string
  readonly item: string
  readonly is_made: boolean
}

const keptItem = ({ id, item, is_made: isMade }: ItemRow): KeptItem => ({ id, text: item, isMade })

/** A response of a conversation, with one of its items; without one it has none, or the conversation is too large. */
interface ConversationRow {
  readonly previous: string | null
  readonly is_too_large: boolean
  readonly id: string | null
  readonly item: string | null
  readonly is_made: boolean | null
}

/** Kept responses in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyKeptResponses extends KeptResponses {
  constructor(private readonly database: Database) {
    super()
  }

  /** One statement: the end of an answer waits for it. */
  override async keep({ ownerId, id, previousId, input, output, response }: KeptResponse): Promise<void> {
    const items = [...input, ...output]
    const bytes = items.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
    await this.database.run((queries) =>
      sql`
        with kept as (
          insert into kept_response (owner_id, id, previous, response, item_bytes, created_at_ms)
          values (${ownerId}, ${id}, ${previousId ?? null}, ${response}, ${bytes}, ${Date.now()})
          on conflict do nothing returning owner_id, id
        )
        insert into kept_item (owner_id, response_id, place, id, is_output, is_made, item)
        select kept.owner_id, kept.id, given.place, given.id, given.place > ${input.length}, given.is_made, given.item
        from kept, unnest(
          ${items.map((item) => item.id)}::text[], ${items.map(({ isMade }) => isMade)}::boolean[],
          ${items.map(({ text }) => text)}::text[]
        ) with ordinality given (id, is_made, item, place)`.execute(queries),
    )
  }

  override async find(ownerId: string, id: string): Promise<FoundResponse | undefined> {
    const { rows } = await this.database.run((queries) =>
      sql<FoundResponse>`
        select response, array(
          select item from kept_item item
          where item.owner_id = kept.owner_id and item.response_id = kept.id and item.is_output order by item.place
        ) as output
        from kept_response kept where kept.owner_id = ${ownerId} and kept.id = ${id}`.execute(queries),
    )
    return rows[0]
  }

  override async inputOf(ownerId: string, id: string): Promise<readonly KeptItem[] | undefined> {
    const { rows } = await this.database.run((queries) =>
      sql<ItemRow & { has_item: boolean }>`
        select item.id is not null as has_item, item.id, item.item, item.is_made
        from kept_response response left join kept_item item
          on item.owner_id = response.owner_id and item.response_id = response.id and not item.is_output
        where response.owner_id = ${ownerId} and response.id = ${id} order by item.place`.execute(queries),
    )
    return rows.length === 0 ? undefined : rows.filter((row) => row.has_item).map(keptItem)
  }

  /** One statement: what is deleted meanwhile is there as a whole, or not at all. */
  override async conversation(ownerId: string, id: string, maximumBytes: number): Promise<KeptConversation> {
    const { rows } = await this.database.run((queries) =>
      sql<ConversationRow>`
        with recursive chain as (
          select id, previous, 1 as distance, item_bytes::bigint as bytes
          from kept_response where owner_id = ${ownerId} and id = ${id}
          union all
          select earlier.id, earlier.previous, chain.distance + 1, chain.bytes + earlier.item_bytes
          from chain join kept_response earlier on earlier.owner_id = ${ownerId} and earlier.id = chain.previous
          where chain.bytes <= ${maximumBytes}
        ),
        measured as (select chain.*, max(bytes) over () > ${maximumBytes} as is_too_large from chain)
        select measured.previous, measured.is_too_large, item.id, item.item, item.is_made
        from measured left join kept_item item
          on item.owner_id = ${ownerId} and item.response_id = measured.id and not measured.is_too_large
        order by measured.distance desc, item.place`.execute(queries),
    )
    return conversationIn(rows, id)
  }

  override async items(
    ownerId: string,
    ids: readonly string[],
    maximumBytes: number,
  ): Promise<ReadonlyMap<string, KeptItem> | undefined> {
    const { rows } = await this.database.run((queries) =>
      sql<Omit<ItemRow, 'item'> & { item: string | null }>`
        with found as (
          select distinct on (id) id, is_made, response_id, place, octet_length(item) as bytes
          from kept_item where owner_id = ${ownerId} and id = any(${[...ids]}::text[])
          order by id, is_output desc, response_id, place
        ),
        measured as (select *, sum(bytes) over () > ${maximumBytes} as is_too_large from found)
        select measured.id, measured.is_made, item.item
        from measured left join kept_item item
          on item.owner_id = ${ownerId} and item.response_id = measured.response_id and item.place = measured.place
            and not measured.is_too_large`.execute(queries),
    )
    const found = new Map<string, KeptItem>()
    for (const { item, ...row } of rows) {
      if (item === null) return undefined
      found.set(row.id, keptItem({ ...row, item }))
    }
    return found
  }

  override async delete(ownerId: string, id: string): Promise<boolean> {
    const { numDeletedRows } = await this.database.run((queries) =>
      queries.deleteFrom('kept_response').where('owner_id', '=', ownerId).where('id', '=', id).executeTakeFirst(),
    )
    return numDeletedRows > 0n
  }

  override prune(beforeMs: number, limit: number): Promise<number> {
    const aging = { table: 'kept_response', timeColumn: 'created_at_ms' } as const
    return this.database.run((queries) => deleteOldest(queries, aging, beforeMs, limit))
  }
}

/** The rows begin with those of the earliest response that is there. */
function conversationIn(rows: readonly ConversationRow[], id: string): KeptConversation {
  const [earliest] = rows
  if (earliest === undefined) return { state: 'missing', id }
  if (earliest.is_too_large) return { state: 'too_large' }
  if (earliest.previous !== null) return { state: 'missing', id: earliest.previous }
  const items: KeptItem[] = []
  for (const { id: itemId, item, is_made: isMade } of rows) {
    if (itemId !== null && item !== null) items.push({ id: itemId, text: item, isMade: isMade === true })
  }
  return { state: 'whole', items }
}
