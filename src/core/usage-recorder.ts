import type { Call, Units } from './request-context.js'
import type { UsageOutcome, UsageRecord } from './usage-record.js'

/** One thing an upstream charges for within a call, as it reported it, or as the gateway counted it (`estimated`). */
export interface UsageEntry {
  /** One realtime session makes many entries. */
  readonly call: Call
  readonly channelId: string
  /** As the caller named it. */
  readonly model: string
  /** `response`: one answer of the model. `input_transcription`: what the caller said, written down by another model. */
  readonly kind: 'response' | 'input_transcription'
  readonly units: Units
  readonly estimated: boolean
  /** What the gateway counted of it itself, where `units` are the upstream's; absent = nothing. */
  readonly estimate?: Units | undefined
  /** Absent = `ok`. */
  readonly outcome?: UsageOutcome
}

/** A task that is over, told once by whoever wrote its end down. */
export interface EndedTask {
  /** Unique among all tasks; a task told twice is recorded once. */
  readonly id: string
  /** `ownerOf(caller)`. */
  readonly ownerId: string
  readonly taskClass: 'video' | 'image'
  readonly route: string
  readonly model: string
  readonly channelId: string
  readonly hasSucceeded: boolean
  /** What the upstream says it took off the account; empty when it says nothing. */
  readonly reported: Units
  readonly durationMs: number | undefined
}

/** What an ended task has used, priced: to be written in the transaction that ends the task. */
export interface SettledTask {
  /** undefined where usage is not stored. */
  readonly record: UsageRecord | undefined
  /** To be called once the transaction has been committed: then it counts. */
  readonly whenWritten: () => void
}

/**
 * Takes note of what was used; the token under which capabilities inject it. Whoever calls it goes on whatever it throws:
 * accounting never ends what it counts. Plain requests are counted without it, when they are over.
 */
export abstract class UsageRecorder {
  abstract record(entry: UsageEntry): void
  /** For tasks whose end nobody writes down. */
  abstract taskEnded(task: EndedTask): void
  /** For tasks whose end is written down; undefined when nothing can be made of it, which the log tells. */
  abstract settleTask(task: EndedTask): SettledTask | undefined
}
