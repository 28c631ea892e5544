import type { FrameScan } from '../core/json-spans.js'
import type { ReservationRefusal } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import type { ResponseUsage, UsageOutcome } from '../core/usage-record.js'
import { responseIdOf, isOutOfBand, usageOf } from '../dialects/realtime/response.js'
import type { MaybePromise } from '../limits/counters.js'
import { ResponseUsageEstimator } from './response-meter.js'
import type { SessionContext } from './session-context.js'
import { SessionUsageLimits } from './session-limits.js'

/** Names that an upstream may add up over a long session; more would be memory that grows with what it invents. */
const MAXIMUM_NAMES = 64

/** Both counts by name, nested as they are. Where one has a number and the other an object, the first stays. */
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

const TRANSCRIPTION_COMPLETED = 'conversation.item.input_audio_transcription.completed'

/** What a server event of this type bills; both dialects use the same two. */
export function billedKind(type: string): Kind | undefined {
  if (type === 'response.done') return 'response'
  return type === TRANSCRIPTION_COMPLETED ? 'input_transcription' : undefined
}

/**
 * The units of a session: one entry per billed event, one for what was under way at its end, and their sums for the log
 * line of the call. Nothing that goes wrong here reaches the session.
 */
export class SessionUsage {
  private responses: Units | undefined
  /** Billed by the prices of another model, so they are not mixed with the others. */
  private transcriptions: Units | undefined

  private hasEstimate = false

  private readonly limits: SessionUsageLimits
  private readonly meter = new ResponseUsageEstimator()

  constructor(private readonly context: SessionContext) {
    this.limits = new SessionUsageLimits(context.call.quota)
  }

  /** Whether an answer is under way: asked for, or begun, by a client or by the upstream itself. */
  isResponding(): boolean {
    return this.meter.isResponding || !this.limits.responses.isEmpty()
  }

  /** `event` is of that kind; one without usage (a failed answer) bills nothing. */
  recordEvent(kind: Kind, event: Buffer): void {
    const units = usageOf(event)
    if (kind === 'response') this.recordResponse(units, event)
    else if (units !== undefined) this.record(kind, units, { estimated: false })
  }

  /** Any other event of the upstream. */
  see(type: string, event: Buffer, scan: FrameScan): void {
    if (type === RESPONSE_BEGUN) this.limits.responses.begin(() => this.meter.expected(), responseIdOf(event))
    this.meter.see(type, event, scan)
  }

  /** The `error` that an event of the upstream reports. */
  reject(error: Readonly<Record<string, unknown>>): void {
    this.limits.responses.reject(error)
  }

  /** Reserves for the answer that this event of the client asks for. Why it may not have it; undefined where it may. */
  ask(create: Buffer, eventId: string | undefined): MaybePromise<ReservationRefusal | undefined> {
    return this.limits.responses.ask(() => this.meter.expected(create), eventId)
  }

  /** Any other event than an append has gone to the upstream. */
  send(type: string, event: Buffer): void {
    if (this.limits.isLimited) this.meter.send(type, event)
  }

  /** A message of that many bytes with audio has gone to the upstream. */
  append(messageBytes: number): void {
    this.meter.append(messageBytes)
  }

  /** The session is over; an answer that is still under way will never say what it has taken. */
  end(outcome: UsageOutcome): void {
    const units = this.meter.estimate()
    if (units !== undefined) this.record('response', units, { estimated: true, outcome })
  }

  private recordResponse(units: Units | undefined, done: Buffer): void {
    const estimate = this.meter.estimateOfOne()
    this.meter.end(units, isOutOfBand(done))
    const answerId = responseIdOf(done)
    if (units === undefined) this.limits.responses.end(undefined, answerId)
    else this.record('response', units, { estimated: false, estimate }, answerId)
  }

  private record(kind: Kind, units: Units, how: Certainty, answerId?: string): void {
    const { call, requestId, channelId, model, recorder, logger } = this.context
    try {
      this.limits.record(kind, units, answerId)
      this.add(kind, units)
      this.hasEstimate ||= how.estimated
      call.log.usage = { units: this.sums(), estimated: this.hasEstimate }
      recorder.record({ call, channelId, model, kind, units, ...how })
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
