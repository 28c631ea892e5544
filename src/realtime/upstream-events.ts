import { FrameScan } from '../core/frame-scan.js'
import { isRecord } from '../core/validation-rules.js'
import type { RealtimeTranslator } from '../dialects/realtime/translator.js'
import { scrubUpstreamText } from './close-reason.js'
import type { RealtimeTerms } from './session-context.js'
import { billedKind, type SessionUsage } from './session-usage.js'

const NOTHING: readonly Buffer[] = []

/**
 * What a session does with each message of its upstream. Only the few that bill something or report an error are
 * parsed; the others, audio above all, are passed to the translation as they are.
 */
export class UpstreamEvents {
  private hasWarned = false

  constructor(
    private readonly terms: RealtimeTerms,
    private readonly translator: RealtimeTranslator,
    private readonly usage: SessionUsage,
  ) {}

  /**
   * The messages for the client. None for what is no event (binary, not a JSON object): no client could read it, and
   * the log tells of the first of a session. Never throws.
   */
  read(message: Buffer, isBinary: boolean): readonly Buffer[] {
    if (isBinary) return this.drop('a binary message')
    const scan = FrameScan.of(message)
    if (scan === undefined) return this.drop('not a JSON object')
    try {
      return this.translator.toClient(this.noted(message, scan))
    } catch (error) {
      return this.drop(error)
    }
  }

  private noted(message: Buffer, scan: FrameScan): Buffer {
    const type = scan.type()?.type ?? ''
    const kind = billedKind(type)
    if (kind === undefined) this.usage.see(type, message, scan)
    else this.usage.note(kind, message)
    return mayReportError(type) ? this.withoutSecrets(message, type) : message
  }

  /** The very same message when the text of its error, if it reports one, may be seen as it is. */
  private withoutSecrets(message: Buffer, type: string): Buffer {
    const event: unknown = JSON.parse(message.toString())
    const error = isRecord(event) ? errorOf(event) : undefined
    if (type === 'error' && error !== undefined) this.usage.reject(error)
    if (error === undefined || typeof error['message'] !== 'string') return message
    const clean = scrubUpstreamText(error['message'], this.terms.credentials)
    if (clean === error['message']) return message
    error['message'] = clean
    return Buffer.from(JSON.stringify(event))
  }

  private drop(fault: unknown): readonly Buffer[] {
    const { requestId, channelId, logger } = this.terms
    if (!this.hasWarned) logger.warn({ requestId, channel: channelId, err: fault }, 'upstream message dropped')
    this.hasWarned = true
    return NOTHING
  }
}

const mayReportError = (type: string): boolean =>
  type === 'error' || type === 'response.done' || type.endsWith('.failed')

/** Of an `error` event, of a failed input transcription, or of a failed response. */
function errorOf(event: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined {
  const response = event['response']
  const details = isRecord(response) ? response['status_details'] : undefined
  const error = event['error'] ?? (isRecord(details) ? details['error'] : undefined)
  return isRecord(error) ? error : undefined
}
