/** `begun` = an action whose end was never written down. `refused` = nothing was done, and the one who asked was told why. */
export type AuditOutcome = 'begun' | 'done' | 'refused' | 'failed'

/** What somebody did, or tried to do, with the operator's powers. Never a key or the hash of one. */
export interface AuditEntry {
  /** Unix milliseconds. */
  readonly atMs: number
  /** A fingerprint of the admin key, `cli` for whoever has the store itself, `-` for somebody who was not let in. */
  readonly actor: string
  /** A stable word: `keys.create`. */
  readonly action: string
  readonly target?: string
  readonly outcome: AuditOutcome
  readonly details: Readonly<Record<string, unknown>>
  readonly requestId: string
}

export interface AuditRecord extends AuditEntry {
  /** Grows from one entry to the next. */
  readonly sequence: number
}

/**
 * What was done with the operator's powers; also the injection token. All methods reject with `GatewayError('overloaded')`
 * while the database cannot be reached.
 */
export abstract class AdminAuditRepository {
  /** Resolves with the entry's sequence. */
  abstract record(entry: AuditEntry): Promise<number>
  /** Writes down how what had begun has ended. */
  abstract settle(sequence: number, outcome: AuditOutcome): Promise<void>
  /** The newest first; only those before a sequence where one is given. */
  abstract page(limit: number, before?: number): Promise<readonly AuditRecord[]>
  /** Deletes at most so many entries from before a time; resolves with how many. */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}
