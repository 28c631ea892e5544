import { Inject, Injectable } from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { Retention } from '../storage/retention.js'
import { RESPONSE_RETENTION_MS } from './response-pins.js'

/** With their items they may take gigabytes. */
const BATCH_ROWS = 100

/** An item of a conversation. */
export interface KeptItem {
  /** The caller's own, or one that the gateway gave it. */
  readonly id: string
  /** JSON, as it was spelled. */
  readonly text: string
  /** Whether a translation has made it: its id and its seals mean nothing to an upstream. */
  readonly isMade: boolean
}

/** A response that no upstream keeps. */
export interface KeptResponse {
  readonly ownerId: string
  readonly id: string
  /** The response whose conversation it goes on with, if the gateway keeps that. */
  readonly previousId: string | undefined
  readonly input: readonly KeptItem[]
  readonly output: readonly KeptItem[]
  /** JSON of the response without the items of its output. */
  readonly response: string
}

/** A kept response as it is read: JSON of the response without the items of its output, and of each of these. */
export interface FoundResponse {
  readonly response: string
  readonly output: readonly string[]
}

/** A conversation up to the end of one response; `missing`: `id` is not kept, or not any more. */
export type KeptConversation =
  | { readonly state: 'whole'; readonly items: readonly KeptItem[] }
  | { readonly state: 'missing'; readonly id: string }
  | { readonly state: 'too_large' }

/**
 * Responses that the gateway keeps itself, as their upstreams speak another dialect; also the injection token. Each belongs to an owner:
 * for all others there is no such response. All methods reject with `GatewayError('overloaded')` while the store cannot be reached.
 */
export abstract class KeptResponses {
  /** Without effect where the owner has one of this id. */
  abstract keep(response: KeptResponse): Promise<void>
  abstract find(ownerId: string, id: string): Promise<FoundResponse | undefined>
  /** undefined where there is no such response. */
  abstract inputOf(ownerId: string, id: string): Promise<readonly KeptItem[] | undefined>
  /** The input and output of the response and of all before it, in order; `too_large` where that is more than so many bytes of JSON. */
  abstract conversation(ownerId: string, id: string, maximumBytes: number): Promise<KeptConversation>
  /** Those items that the owner has, by their ids; undefined where they are more than so many bytes of JSON together. */
  abstract items(
    ownerId: string,
    ids: readonly string[],
    maximumBytes: number,
  ): Promise<ReadonlyMap<string, KeptItem> | undefined>
  /** Whether there was such a response. */
  abstract delete(ownerId: string, id: string): Promise<boolean>
  /** Deletes at most so many responses older than that; returns how many there were. */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}

/** Deletes responses that have been kept as long as was promised. */
@Injectable()
export class KeptResponseRetention extends Retention {
  constructor(database: Database, responses: KeptResponses, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => responses.prune(Date.now() - RESPONSE_RETENTION_MS, limit)
    super(database, { prune, batchRows: BATCH_ROWS, failure: 'old responses could not be deleted' }, logger)
  }
}
