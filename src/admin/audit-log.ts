import { Inject, Injectable } from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'

/** `begun` = an action whose end was never written down. `refused` = nothing was done, and the response said why. */
export type AuditOutcome = 'begun' | 'done' | 'refused' | 'failed'

/** An action, or attempt, with the operator's powers. Never a key or the hash of one. */
export interface AuditEntry {
  /** Unix milliseconds. */
  readonly atMs: number
  /** A fingerprint of the admin key, `cli` for the key command on the store itself, `-` for a failed attempt. */
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
export abstract class AuditRepository {
  /** Resolves with the entry's sequence. */
  abstract record(entry: AuditEntry): Promise<number>
  /** Writes down how what had begun has ended. */
  abstract settle(sequence: number, outcome: AuditOutcome): Promise<void>
  /** The newest first; only those before a sequence where one is given. */
  abstract page(limit: number, before?: number): Promise<readonly AuditRecord[]>
  /** Deletes at most so many entries from before a time; resolves with how many. */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}

/** Who acts with the operator's powers, and in which request. */
export interface Admin {
  readonly actor: string
  readonly requestId: string
}

/** What is done, in words for the audit log: nothing secret. */
export interface AuditedAction {
  readonly action: string
  readonly target?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** Kinds of errors that are the store's, not a refusal of the action. */
const FAILURES: ReadonlySet<string> = new Set(['overloaded', 'internal'])

/** Writes down who did what: a row of the audit log and a line of the log. */
@Injectable()
export class AuditLog {
  constructor(
    private readonly audit: AuditRepository,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {}

  /**
   * Does something that changes something. It is written down before it is done, and not done when that fails
   * (`overloaded`); how it ended is added afterwards.
   */
  async change<Result>(admin: Admin, act: AuditedAction, work: () => Result | Promise<Result>): Promise<Result> {
    const sequence = await this.audit.record(entryOf(admin, act, 'begun'))
    try {
      const result = await work()
      await this.settle(sequence, admin, act, 'done')
      return result
    } catch (error) {
      await this.settle(sequence, admin, act, outcomeOf(error))
      throw error
    }
  }

  /** Looks at something. That goes on, and is not kept waiting, when it cannot be written down. */
  async read<Result>(admin: Admin, act: AuditedAction, work: () => Result | Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      void this.record(admin, act, 'done')
      return result
    } catch (error) {
      void this.record(admin, act, outcomeOf(error))
      throw error
    }
  }

  /** What needs nothing to be done. Never rejects: what cannot be written down stands in the log. */
  async record(admin: Admin, act: AuditedAction, outcome: AuditOutcome): Promise<void> {
    this.log(admin, act, outcome)
    await this.audit.record(entryOf(admin, act, outcome)).catch((error: unknown) => {
      this.miss(admin, error)
    })
  }

  /** The row says `begun` already: that its end is missing there does not undo what was done. */
  private async settle(sequence: number, admin: Admin, act: AuditedAction, outcome: AuditOutcome): Promise<void> {
    this.log(admin, act, outcome)
    await this.audit.settle(sequence, outcome).catch((error: unknown) => {
      this.miss(admin, error)
    })
  }

  private log({ actor, requestId }: Admin, { action, target, details }: AuditedAction, outcome: AuditOutcome): void {
    this.logger.info({ requestId, actor, action, target, outcome, details }, 'audit')
  }

  private miss({ requestId }: Admin, error: unknown): void {
    this.logger.warn({ requestId, err: error }, 'the audit log cannot be written')
  }
}

const entryOf = (
  { actor, requestId }: Admin,
  { action, target, details = {} }: AuditedAction,
  outcome: AuditOutcome,
) => ({
  atMs: Date.now(),
  actor,
  action,
  ...(target === undefined ? {} : { target }),
  outcome,
  details,
  requestId,
})

const outcomeOf = (error: unknown): AuditOutcome =>
  error instanceof GatewayError && !FAILURES.has(error.kind) ? 'refused' : 'failed'
