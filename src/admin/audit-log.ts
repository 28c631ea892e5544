import { Inject, Injectable } from '@nestjs/common'
import { KeyTable } from '../auth/key-table.js'
import { GatewayError } from '../core/errors.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { hasKey, KEY_MASK } from '../core/key-mask.js'

/** `begun` = the outcome was never recorded. `refused` = nothing was done, and the response said why. */
export type AuditOutcome = 'begun' | 'done' | 'refused' | 'failed'

/** An admin action or a failed attempt. Never a key or the hash of one. */
export interface AuditEntry {
  /** Unix milliseconds. */
  readonly atMs: number
  /** A fingerprint of the admin key, `cli` for the key command on the store itself, `-` for a failed attempt. */
  readonly actor: string
  /** A fixed name such as `keys.create`. */
  readonly action: string
  readonly target?: string
  readonly outcome: AuditOutcome
  readonly details: Readonly<Record<string, unknown>>
  readonly requestId: string
}

export interface AuditRecord extends AuditEntry {
  /** Ascending. */
  readonly sequence: number
}

/**
 * Store of admin actions; also the injection token. All methods reject with `GatewayError('overloaded')`
 * while the database cannot be reached.
 */
export abstract class AuditRepository {
  /** Resolves with the entry's sequence. */
  abstract record(entry: AuditEntry): Promise<number>
  abstract recordOutcome(sequence: number, outcome: AuditOutcome): Promise<void>
  /** Newest first; optionally only entries before a sequence. */
  abstract page(limit: number, before?: number): Promise<readonly AuditRecord[]>
  /** Deletes at most `limit` entries from before a time; resolves with their number. */
  abstract prune(beforeMs: number, limit: number): Promise<number>
}

/** The admin key in use, and the request. */
export interface Admin {
  readonly actor: string
  readonly requestId: string
}

/** An action as recorded in the audit log: nothing secret. */
export interface AuditedAction {
  readonly action: string
  readonly target?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** Error kinds of a failing store; all others mean that the action was refused. */
const FAILURES: ReadonlySet<string> = new Set(['overloaded', 'internal'])

/** Records admin actions: a row of the audit log and a log line each. */
@Injectable()
export class AuditLog {
  constructor(
    private readonly audit: AuditRepository,
    @Inject(KeyTable) private readonly keys: Pick<KeyTable, 'knows'>,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {}

  /**
   * Performs an action that changes something. It is recorded first, and not performed if that fails
   * (`overloaded`); its outcome is recorded afterwards.
   */
  async change<Result>(admin: Admin, given: AuditedAction, work: () => Result | Promise<Result>): Promise<Result> {
    const act = this.masked(given)
    const sequence = await this.audit.record(entryOf(admin, act, 'begun'))
    try {
      const result = await work()
      await this.recordOutcome(sequence, admin, act, 'done')
      return result
    } catch (error) {
      await this.recordOutcome(sequence, admin, act, outcomeOf(error))
      throw error
    }
  }

  /** Performs a read. It neither waits for the record nor fails with it. */
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

  /** Records without an action. Never rejects: a failure is logged. */
  async record(admin: Admin, given: AuditedAction, outcome: AuditOutcome): Promise<void> {
    const act = this.masked(given)
    this.log(admin, act, outcome)
    await this.audit.record(entryOf(admin, act, outcome)).catch((error: unknown) => {
      this.logMissing(admin, error)
    })
  }

  /** Never rejects: the row then stays `begun`, as the action itself is done. */
  private async recordOutcome(
    sequence: number,
    admin: Admin,
    act: AuditedAction,
    outcome: AuditOutcome,
  ): Promise<void> {
    this.log(admin, act, outcome)
    await this.audit.recordOutcome(sequence, outcome).catch((error: unknown) => {
      this.logMissing(admin, error)
    })
  }

  /** Operators paste keys where ids belong. */
  private masked({ action, target, details }: AuditedAction): AuditedAction {
    return {
      action,
      ...(target === undefined ? {} : { target: this.maskedText(target) }),
      ...(details === undefined
        ? {}
        : {
            details: Object.fromEntries(
              Object.entries(details).map(([name, value]) => [name, this.maskedDetail(value)]),
            ),
          }),
    }
  }

  private maskedDetail(value: unknown): unknown {
    if (typeof value === 'string') return this.maskedText(value)
    return Array.isArray(value) ? value.map((item) => this.maskedDetail(item)) : value
  }

  private maskedText(text: string): string {
    return hasKey(text, (piece) => this.keys.knows(piece)) ? KEY_MASK : text
  }

  private log({ actor, requestId }: Admin, { action, target, details }: AuditedAction, outcome: AuditOutcome): void {
    this.logger.info({ requestId, actor, action, target, outcome, details }, 'audit')
  }

  private logMissing({ requestId }: Admin, error: unknown): void {
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
