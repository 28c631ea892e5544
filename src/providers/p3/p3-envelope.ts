import { isRecord } from '../../core/validation-rules.js'
import { malformedAnswer } from '../../upstream/upstream-response.js'

/** `data.status` of the answer, or the event, with which a speech is complete. */
export const COMPLETE = 2

/** What P3 says around the audio, in a plain answer and in each event of a stream alike. */
export interface P3Envelope {
  /** `base_resp.status_code`; 0 = success, whatever the HTTP status says, and where there is no `base_resp`. */
  readonly code: number
  readonly message: string
  /** 1 = in progress, 2 = complete. */
  readonly status?: number
  /** `data.audio` as it stands in the text: a link, or nothing where the audio has been taken out. */
  readonly audio: string
  readonly subtitleFile?: string
  readonly billedCharacters?: number
  readonly audioMs?: number
  /** All of the audio, wherever it is. */
  readonly audioBytes?: number
  readonly traceId?: string
}

/** Throws `upstream_failed` for anything but one JSON object, and for one whose verdict cannot be read. */
export function readEnvelope(text: string): P3Envelope {
  const answer = parsed(text)
  const data = recordAt(answer, 'data')
  const figures = recordAt(answer, 'extra_info')
  return {
    ...verdictOf(answer),
    audio: word(data['audio']) ?? '',
    ...present('status', count(data['status'])),
    ...present('subtitleFile', word(data['subtitle_file'])),
    // Nobody speaks for nothing: a zero is a figure that is missing.
    ...present('billedCharacters', count(figures['usage_characters']) || undefined),
    ...present('audioMs', count(figures['audio_length'])),
    ...present('audioBytes', count(figures['audio_size'])),
    ...present('traceId', word(answer['trace_id'])),
  }
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch {
    // Falls through: whatever is not a JSON object is a broken answer.
  }
  throw malformedAnswer('The upstream answered with broken JSON.')
}

/** An answer without a verdict is judged by its audio; a verdict that says something unheard of is no success. */
function verdictOf({ base_resp: verdict }: Record<string, unknown>): Pick<P3Envelope, 'code' | 'message'> {
  if (verdict == null) return { code: 0, message: '' }
  const { status_code: code, status_msg: message } = isRecord(verdict) ? verdict : {}
  if (!Number.isInteger(code)) throw malformedAnswer('The upstream answered without a status that can be read.')
  return { code: code as number, message: word(message) ?? '' }
}

function recordAt(holder: Record<string, unknown>, name: string): Record<string, unknown> {
  const value = holder[name]
  return isRecord(value) ? value : {}
}

const word = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

const present = <Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { readonly [Key in Name]?: Value } =>
  value === undefined ? {} : ({ [name]: value } as { readonly [Key in Name]?: Value })
