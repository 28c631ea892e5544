import type { Units } from '../common/http/call.js'
import { usageOf } from '../common/realtime-dialect/event-usage.js'
import type { FrameScan } from '../common/realtime-dialect/frame-scan.js'
import type { UsageOutcome } from '../common/usage/usage-record.js'
import type { UsageEntry } from '../common/usage/usage-recorder.js'
import { AnswerMeter } from './answer-meter.js'
import type { RealtimeTerms } from './realtime-terms.js'
import { SessionSpending } from './session-spending.js'
import { sumOfUnits } from './unit-sums.js'

type Kind = UsageEntry['kind']

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

  private readonly spending: SessionSpending
  private readonly meter = new AnswerMeter()

  constructor(private readonly terms: RealtimeTerms) {
    this.spending = new SessionSpending(terms.call.allowance)
  }

  /** `event` is of that kind; one without usage (a failed answer) bills nothing. */
  note(kind: Kind, event: Buffer): void {
    const units = usageOf(event)
    if (kind === 'response') this.meter.end(units)
    if (units !== undefined) this.record(kind, units, { estimated: false })
  }

  /** Any other event of the upstream. */
  see(type: string, event: Buffer, scan: FrameScan): void {
    this.meter.see(type, event, scan)
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

  private record(kind: Kind, units: Units, how: Pick<UsageEntry, 'estimated' | 'outcome'>): void {
    const { call, requestId, channelId, model, recorder, logger } = this.terms
    try {
      this.spending.note(kind, units)
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
