import type { ModelClass } from '../config/model-classes.js'
import type { FrameScan } from '../core/json-spans.js'
import type { ReservationRefusal } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import type { ResponseUsage, UsageOutcome } from '../core/usage-record.js'
import { isRecord } from '../core/validation-rules.js'
import { isOutOfBand, responseIdOf, usageOf } from '../dialects/realtime/session-state.js'
import { showsSettings, transcriptionModelsOf } from '../dialects/realtime/transcription-session.js'
import type { MaybePromise } from '../limits/counters.js'
import { INPUT_TOKENS_PER_SECOND } from './response-estimate.js'
import { ResponseUsageEstimator } from './response-meter.js'
import type { SessionContext } from './session-context.js'
import { SessionUsageLimits } from './session-limits.js'

/** Limit of unit names summed over a long session; more would let an upstream grow this process' memory. */
const MAXIMUM_NAMES = 64

/** Sums both counts by name, nested ones too. Where one has a number and the other an object, the first stays. */
export function sumOfUnits(sums: Units | undefined, units: Units): Units {
  const result: Record<string, number | Units> = { ...sums }
  for (const [name, value] of Object.entries(units)) {
    const sum = result[name]
    if (sum === undefined && Object.keys(result).length >= MAXIMUM_NAMES) continue
    if (typeof value === 'number') {
      if (sum === undefined || typeof sum === 'number') result[name] = (sum ?? 0) + value
    } else if (typeof sum !== 'number') {
      result[name] = sumOfUnits(sum, value)
    }
  }
  return result
}

type Kind = ResponseUsage['kind']

type Certainty = Pick<ResponseUsage, 'estimated' | 'estimate' | 'outcome'>

const RESPONSE_BEGUN = 'response.created'

const AUDIO_COMMITTED = 'input_audio_buffer.committed'
const AUDIO_CLEARED = 'input_audio_buffer.cleared'
const TRANSCRIPTION_COMPLETED = 'conversation.item.input_audio_transcription.completed'
const TRANSCRIPTION_FAILED = 'conversation.item.input_audio_transcription.failed'
const TRANSCRIPTION_DELTA = 'conversation.item.input_audio_transcription.delta'
const ITEM_DELETED = 'conversation.item.deleted'

/** What a server event of this type bills; both dialects use the same two. */
export function billedKind(type: string): Kind | undefined {
  if (type === 'response.done') return 'response'
  return type === TRANSCRIPTION_COMPLETED ? 'input_transcription' : undefined
}

/** More than an upstream transcribes at once; beyond it the oldest is forgotten. */
const MAXIMUM_PENDING = 256
/** Nor does one write words of an item that is so long ago. */
const MAXIMUM_COMMITTED = 1_024

/** Models of other classes are billed by tokens; what one has reported itself goes first. */
const BILLED_BY_TIME: ReadonlySet<ModelClass | undefined> = new Set<ModelClass>(['stt-standard', 'stt-realtime'])

/** Committed audio whose transcription the upstream has neither completed nor given up. */
class PendingTranscriptions {
  /** Seconds by item, the oldest first. */
  private readonly seconds = new Map<string, number>()
  /** Every item whose audio was committed, the oldest first. */
  private readonly committed = new Set<string>()
  /** Of audio that the upstream has written words of, and that was cleared instead of committed. */
  private clearedSeconds = 0
  private isBilledByTime: boolean | undefined

  get isEmpty(): boolean {
    return this.seconds.size === 0
  }

  /** `isTranscribed`: a transcription of it will be billed. */
  commit(itemId: string, seconds: number, isTranscribed: boolean): void {
    this.committed.add(itemId)
    forgetOldest(this.committed, MAXIMUM_COMMITTED)
    if (!isTranscribed) return
    this.seconds.set(itemId, seconds)
    forgetOldest(this.seconds, MAXIMUM_PENDING)
  }

  /** Audio that words were written of was cleared. */
  clear(seconds: number): void {
    this.clearedSeconds += seconds
  }

  /** `units`: what it was billed by, unless it failed. */
  end(itemId: string, units?: Units): void {
    this.seconds.delete(itemId)
    if (units !== undefined) this.isBilledByTime = units['seconds'] !== undefined
  }

  wasCommitted(itemId: string): boolean {
    return this.committed.has(itemId)
  }

  /** What all of them will use, and audio that waits, in units of the earlier ones; undefined where there is none. */
  estimate(modelClass: ModelClass | undefined, waitingSeconds: number): Units | undefined {
    const total = [...this.seconds.values()].reduce(
      (sum, seconds) => sum + seconds,
      this.clearedSeconds + waitingSeconds,
    )
    if (total === 0) return undefined
    if (this.isBilledByTime ?? BILLED_BY_TIME.has(modelClass)) return { seconds: Math.round(total * 1000) / 1000 }
    const tokens = Math.ceil(total * INPUT_TOKENS_PER_SECOND)
    const details = { text_tokens: 0, audio_tokens: tokens }
    return { total_tokens: tokens, input_tokens: tokens, input_token_details: details, output_tokens: 0 }
  }
}

function forgetOldest(items: Map<string, number> | Set<string>, maximum: number): void {
  const [oldest] = items.keys()
  if (items.size > maximum && oldest !== undefined) items.delete(oldest)
}

/**
 * The units of a session: one usage entry per billed event, one for what is under way at its end, and their sums for the
 * request's log line. Never throws into the session.
 */
export class SessionUsage {
  private responses: Units | undefined
  /** Kept apart: billed by the prices of another model. */
  private transcriptions: Units | undefined

  /** As the upstream names it; undefined until it has. */
  private transcriptionModel: string | undefined
  /** The upstream has written words of audio that is not committed yet. */
  private hasUncommittedWords = false
  private hasEstimate = false

  private readonly limits: SessionUsageLimits
  private readonly estimator = new ResponseUsageEstimator()
  private readonly pending = new PendingTranscriptions()

  constructor(private readonly context: SessionContext) {
    this.limits = new SessionUsageLimits(context.call.quota, context.kind)
  }

  /**
   * Whether a response is requested or has begun, by the client or by the upstream itself, or the upstream still
   * transcribes committed audio.
   */
  isBusy(): boolean {
    return this.estimator.isResponding || !this.limits.responses.isEmpty() || !this.pending.isEmpty
  }

  /** Records an event of that kind; one without usage (a failed response) bills nothing. */
  recordEvent(kind: Kind, event: Buffer, scan: FrameScan): void {
    const units = usageOf(event)
    if (kind === 'response') {
      this.recordResponse(units, event)
      return
    }
    this.pending.end(itemIdOf(scan), units)
    if (units !== undefined) this.record(kind, units, { estimated: false })
  }

  /** Any other upstream event. */
  onEvent(type: string, event: Buffer, scan: FrameScan): void {
    if (showsSettings(type)) this.learnTranscriptionModel(event)
    if (type === RESPONSE_BEGUN) this.limits.responses.begin(() => this.estimator.estimateNext(), responseIdOf(event))
    const takenSeconds = this.estimator.onEvent(type, event, scan)
    if (type === AUDIO_COMMITTED) this.onCommitted(itemIdOf(scan), takenSeconds)
    else if (type === AUDIO_CLEARED) this.onCleared(takenSeconds)
    else if (type === TRANSCRIPTION_DELTA) this.hasUncommittedWords ||= !this.pending.wasCommitted(itemIdOf(scan))
    else if (type === TRANSCRIPTION_FAILED || type === ITEM_DELETED) this.pending.end(itemIdOf(scan))
  }

  private onCommitted(itemId: string, seconds: number): void {
    this.hasUncommittedWords = false
    this.pending.commit(itemId, seconds, this.transcriptionModel !== undefined)
  }

  private onCleared(seconds: number): void {
    if (this.hasUncommittedWords) this.pending.clear(seconds)
    this.hasUncommittedWords = false
  }

  private learnTranscriptionModel(event: Buffer): void {
    const fields: unknown = JSON.parse(event.toString())
    this.transcriptionModel = isRecord(fields) ? transcriptionModelsOf(fields['session'])[0]?.model : undefined
    const { log } = this.context.call
    // Of a session that was opened without one.
    log.model ??= this.transcriptionModel
  }

  /** The `error` that an upstream event reports. */
  reject(error: Readonly<Record<string, unknown>>): void {
    this.limits.responses.reject(error)
  }

  /** Reserves for the response that this client event requests. Returns the refusal, or undefined. */
  tryReserve(create: Buffer, eventId: string | undefined): MaybePromise<ReservationRefusal | undefined> {
    return this.limits.responses.tryReserve(() => this.estimator.estimateNext(create), eventId)
  }

  /** A client event other than an append was sent upstream. */
  send(type: string, event: Buffer): void {
    if (this.limits.isLimited) this.estimator.send(type, event)
  }

  /** An append of that many bytes was sent upstream. */
  append(messageBytes: number): void {
    this.limits.chargeSentAudio(this.estimator.append(messageBytes))
  }

  /** The session is over: what is still under way is recorded by its estimate. */
  end(outcome: UsageOutcome): void {
    const units = this.estimator.estimate()
    if (units !== undefined) this.record('response', units, { estimated: true, outcome })
    this.limits.chargeRest()
    const { transcriptionModel: model } = this
    const modelClass = model === undefined ? undefined : this.context.transcriptionModel(model).modelClass
    const waitingSeconds = this.hasUncommittedWords ? this.estimator.uncommittedSeconds : 0
    const transcribed = this.pending.estimate(modelClass, waitingSeconds)
    if (transcribed !== undefined) this.record('input_transcription', transcribed, { estimated: true, outcome })
  }

  private recordResponse(units: Units | undefined, done: Buffer): void {
    const estimate = this.estimator.estimateOfOne()
    this.estimator.end(units, isOutOfBand(done))
    const responseId = responseIdOf(done)
    if (units === undefined) this.limits.responses.end(undefined, responseId)
    else this.record('response', units, { estimated: false, estimate }, responseId)
  }

  private record(kind: Kind, units: Units, how: Certainty, responseId?: string): void {
    const { call, requestId, channelId, model, recorder, logger } = this.context
    try {
      this.limits.record(kind, units, responseId)
      this.add(kind, units)
      this.hasEstimate ||= how.estimated
      call.log.usage = { units: this.sums(), estimated: this.hasEstimate }
      const models = kind === 'response' ? { model } : { model: this.transcriptionModel ?? model, sessionModel: model }
      recorder.record({ call, channelId, ...models, kind, units, ...how })
    } catch (err) {
      logger.warn({ requestId, err }, 'usage not recorded')
    }
  }

  private add(kind: Kind, units: Units): void {
    if (kind === 'response') this.responses = sumOfUnits(this.responses, units)
    else this.transcriptions = sumOfUnits(this.transcriptions, units)
  }

  private sums(): Units {
    if (this.transcriptions === undefined) return { ...this.responses }
    return { ...this.responses, input_transcription: this.transcriptions }
  }
}

const itemIdOf = (scan: FrameScan): string => scan.text('item_id') ?? ''
