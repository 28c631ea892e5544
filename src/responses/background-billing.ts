import { Inject, Injectable } from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import { type EndedTask, type UsageOutcome, UsageRecorder } from '../core/usage-record.js'
import type { EndedResponse } from '../dialects/response-state.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Clock } from '../tasks/background-work.js'
import { type BackgroundResponseRow, BackgroundResponses } from './background-responses.js'
import { isId } from '../dialects/kept-answers.js'
import { PendingUsageMarker } from '../storage/pending-usage.js'
import { RESPONSES } from './responses.endpoints.js'

const FIRST_PAUSE_MS = 2_000
const LONGEST_PAUSE_MS = 60_000
const MAXIMUM_DOUBLINGS = 5
/** As a share of the pause, so that responses created together are not asked for together. */
const JITTER = 0.2

/** Pause before the next poll of a response that was polled so many times. `chance` is from [0, 1). */
export function pauseMs(polls: number, chance: number): number {
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(polls, MAXIMUM_DOUBLINGS), LONGEST_PAUSE_MS)
  return Math.round(pause * (1 - JITTER + 2 * JITTER * chance))
}

/** The longest pause before a poll, in ms. */
export const MAXIMUM_PAUSE_MS = Math.ceil(LONGEST_PAUSE_MS * (1 + JITTER))

/** A response in the background, when its upstream has accepted it. */
type BegunResponse = Pick<BackgroundResponseRow, 'ownerId' | 'id' | 'channelId' | 'model' | 'route'>

type Ending = Omit<EndedResponse, 'responseId'>

/** What is recorded where it is not known what a response has used. */
const withoutFigures = (outcome: UsageOutcome): Ending => ({ outcome, usage: undefined, itemIds: [] })

/** Keeps the bill of responses in the background open until it is known what they have used. */
@Injectable()
export class BackgroundBilling {
  /** Rows that the store did not take when their responses began. */
  private readonly unwritten: BackgroundResponseRow[] = []
  /** Set while they are written. */
  private writing: Promise<void> | undefined
  private isClosed = false
  private onPlanned: (atMs: number) => void = () => undefined

  constructor(
    private readonly rows: BackgroundResponses,
    private readonly usage: UsageRecorder,
    private readonly clock: Clock,
    @Inject(PendingUsageMarker) private readonly marker: Pick<PendingUsageMarker, 'write' | 'remove'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Calls back with the time of each poll that is planned here, Unix milliseconds. One listener alone. */
  whenPlanned(listener: (atMs: number) => void): void {
    this.onPlanned = listener
  }

  /** Rejects with `overloaded` where no bill could be kept. */
  async assertPossible(): Promise<void> {
    await this.rows.check()
  }

  /** Never rejects: the upstream works, whatever the store does. A row that it does not take now is written when it does. */
  async begin(begun: BegunResponse): Promise<void> {
    const nowMs = this.clock.nowMs()
    const row = { ...begun, createdAtMs: nowMs, nextPollAtMs: nowMs + pauseMs(0, Math.random()), polls: 0, misses: 0 }
    if (!isId(row.id)) {
      this.logUnrecorded(row, 'its id cannot be asked for')
      return
    }
    await this.marker.write()
    try {
      await this.rows.begin(row)
    } catch (error) {
      this.keep(row, error)
    }
    this.onPlanned(row.nextPollAtMs)
  }

  find(ownerId: string, id: string): Promise<BackgroundResponseRow | undefined> {
    return this.rows.find(ownerId, id)
  }

  /** Records the end that a caller is about to see. Never rejects: what is not recorded here is asked for later. */
  async ended(ownerId: string, end: EndedResponse): Promise<void> {
    try {
      const row = await this.find(ownerId, end.responseId)
      if (row !== undefined) await this.settle(row, end)
    } catch (error) {
      this.logLater(end.responseId, error)
    }
  }

  /**
   * Its caller has deleted it. Never rejects: where the store fails, the next polls find that the upstream does not know it, and it is
   * recorded as `upstream_failed` in place of `caller_left`, without figures as well.
   */
  async deleted(row: BackgroundResponseRow): Promise<void> {
    try {
      await this.settle(row, withoutFigures('caller_left'))
    } catch (error) {
      this.logLater(row.id, error)
    }
  }

  /** Ends the row and records its use, once whatever happens. Rejects with `overloaded` while the store is away. */
  async settle(row: BackgroundResponseRow, end: Ending = withoutFigures('upstream_failed')): Promise<void> {
    const task = endedTask(row, end, this.clock.nowMs())
    try {
      await this.usage.endTask(task, (record) => this.rows.end(row, end.itemIds, record))
    } catch (error) {
      if (error instanceof GatewayError || end.itemIds.length === 0) throw error
      // A bill is worth more than later references to items.
      await this.usage.endTask(task, (record) => this.rows.end(row, [], record))
      this.logger.warn({ err: error, ...logFields(row) }, 'the items of a background response could not be kept')
    }
  }

  /** Polls it at once, as its end may be near. Never rejects. */
  async hasten(ownerId: string, id: string): Promise<void> {
    const nowMs = this.clock.nowMs()
    try {
      await this.rows.hasten(ownerId, id, nowMs)
      this.onPlanned(nowMs)
    } catch (error) {
      this.logLater(id, error)
    }
  }

  /** Rejects with `overloaded` while the store is away. */
  writeUnwritten(): Promise<void> {
    this.writing ??= this.writeEach().finally(() => (this.writing = undefined))
    return this.writing
  }

  /** The process ends: what cannot be written now is lost, and is a line in the log. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true
    try {
      await this.writeUnwritten()
      if ((await this.rows.nextDueAtMs()) === undefined) await this.marker.remove()
    } catch {
      for (const row of this.unwritten.splice(0)) this.logUnrecorded(row, 'the store cannot be reached')
    }
  }

  private async writeEach(): Promise<void> {
    for (let row = this.unwritten[0]; row !== undefined; row = this.unwritten[0]) {
      try {
        await this.rows.begin(row)
      } catch (error) {
        if (error instanceof GatewayError) throw error
        this.logUnrecorded(row, error)
      }
      this.unwritten.shift()
    }
  }

  private keep(row: BackgroundResponseRow, error: unknown): void {
    if (error instanceof GatewayError && !this.isClosed) {
      this.unwritten.push(row)
      this.logger.warn({ err: error, ...logFields(row) }, 'a background response waits for the store')
    } else {
      this.logUnrecorded(row, error)
    }
  }

  private logUnrecorded(row: BackgroundResponseRow, reason: unknown): void {
    const cause = typeof reason === 'string' ? { reason } : { err: reason }
    this.logger.error(
      { ...cause, ...logFields(row) },
      'a background response could not be recorded: its use is not billed',
    )
  }

  private logLater(responseId: string, error: unknown): void {
    this.logger.warn({ err: error, responseId }, 'the end of a background response is recorded later')
  }
}

/** What the log shows of a row. Callers with keys of their own have none. */
export const logFields = ({ id, channelId, model, ownerId }: BackgroundResponseRow) => ({
  responseId: id,
  channelId,
  model,
  keyId: ownerId,
})

const endedTask = (row: BackgroundResponseRow, { outcome, usage }: Ending, nowMs: number): EndedTask => ({
  id: `response ${row.channelId} ${row.id}`,
  ownerId: row.ownerId,
  usageClass: RESPONSES.billing.usageClass,
  route: row.route,
  model: row.model,
  channelId: row.channelId,
  outcome,
  usage,
  // The clock may have been set back meanwhile.
  durationMs: Math.max(0, nowMs - row.createdAtMs),
})
