import type { FrameScan } from '../core/json-spans.js'
import type { ReservationRefusal } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import type { ResponseUsage, UsageOutcome } from '../core/usage-record.js'
import { isRecord } from '../core/validation-rules.js'
import { isOutOfBand, responseIdOf, transcriptionModelsOf, usageOf } from '../dialects/realtime/session-state.js'
import type { MaybePromise } from '../limits/counters.js'
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

/** Events in which an upstream of either dialect says how its session is set. */
const SETTINGS_EVENTS: ReadonlySet<string> = new Set([
  'session.created',
  'session.updated',
  'transcription_session.created',
  'transcription_session.updated',
])

const TRANSCRIPTION_COMPLETED = 'conversation.item.input_audio_transcription.completed'

/** What a server event of this type bills; both dialects use the same two. */
export function billedKind(type: string): Kind | undefined {
  if (type === 'response.done') return 'response'
  return type === TRANSCRIPTION_COMPLETED ? 'input_transcription' : undefined
}

/**
 * The units of a session: one usage entry per billed event, one for a response under way at its end, and their sums for
 * the request's log line. Never throws into the session.
 */
export class SessionUsage {
  private responses: Units | undefined
  /** Kept apart: billed by the prices of another model. */
  private transcriptions: Units | undefined

  /** As the upstream names it; undefined until it has. */
  private transcriptionModel: string | undefined
  private hasEstimate = false

  private readonly limits: SessionUsageLimits
  private readonly estimator = new ResponseUsageEstimator()

  constructor(private readonly context: SessionContext) {
    this.limits = new SessionUsageLimits(context.call.quota)
  }

  /** Whether a response is requested or has begun, by the client or by the upstream itself. */
  isResponding(): boolean {
    return this.estimator.isResponding || !this.limits.responses.isEmpty()
  }

  /** Records an event of that kind; one without usage (a failed response) bills nothing. */
  recordEvent(kind: Kind, event: Buffer): void {
    const units = usageOf(event)
    if (kind === 'response') this.recordResponse(units, event)
    else if (units !== undefined) this.record(kind, units, { estimated: false })
  }

  /** Any other upstream event. */
  onEvent(type: string, event: Buffer, scan: FrameScan): void {
    if (SETTINGS_EVENTS.has(type)) this.learnTranscriptionModel(event)
    if (type === RESPONSE_BEGUN) this.limits.responses.begin(() => this.estimator.estimateNext(), responseIdOf(event))
    this.estimator.onEvent(type, event, scan)
  }

  private learnTranscriptionModel(event: Buffer): void {
    const fields: unknown = JSON.parse(event.toString())
    this.transcriptionModel = isRecord(fields) ? transcriptionModelsOf(fields['session'])[0]?.model : undefined
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
    this.estimator.append(messageBytes)
  }

  /** The session is over: a response still under way is recorded by its estimate. */
  end(outcome: UsageOutcome): void {
    const units = this.estimator.estimate()
    if (units !== undefined) this.record('response', units, { estimated: true, outcome })
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
