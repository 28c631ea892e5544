import { isRecord } from '../../core/validation-rules.js'
import type { RealtimeDialect } from './dialect.js'

const BETA_HEADER_VALUE = 'realtime=v1'
const BETA_PROTOCOL = 'openai-beta.realtime-v1'

const GA_KEYS = ['output_modalities', 'audio'] as const
const BETA_KEYS = [
  'modalities',
  'voice',
  'input_audio_format',
  'output_audio_format',
  'input_audio_transcription',
  'input_audio_noise_reduction',
  'turn_detection',
  'temperature',
  'speed',
  'max_response_output_tokens',
] as const

export interface Handshake {
  /** The value of the `OpenAI-Beta` header. */
  readonly betaHeader: string | undefined
  /** What the client offers in `Sec-WebSocket-Protocol`. */
  readonly protocols: readonly string[]
}

/**
 * Which dialect a caller speaks. The handshake may say beta; otherwise the first event that only one dialect could
 * have sent decides, for good. Until then `dialect` is `undefined` and the caller is treated as the specification's.
 */
export class ClientDialect {
  private constructor(private known: RealtimeDialect | undefined) {}

  static ofHandshake({ betaHeader = '', protocols }: Handshake): ClientDialect {
    const features = betaHeader.split(',').map((feature) => feature.trim().toLowerCase())
    const isBeta = features.includes(BETA_HEADER_VALUE) || protocols.includes(BETA_PROTOCOL)
    return new ClientDialect(isBeta ? 'beta' : undefined)
  }

  static of(dialect: RealtimeDialect): ClientDialect {
    return new ClientDialect(dialect)
  }

  get dialect(): RealtimeDialect | undefined {
    return this.known
  }

  /** Takes what an accepted event shows; the first to show anything decides. */
  learn(shown: RealtimeDialect | undefined): void {
    this.known ??= shown
  }
}

/** The dialect that these parsed fields of a client event belong to; `undefined` when both dialects have them. */
export function dialectShownBy(type: string, fields: Readonly<Record<string, unknown>>): RealtimeDialect | undefined {
  if (type === 'transcription_session.update') return 'beta'
  if (type === 'session.update') {
    const session = fields['session']
    return isRecord(session) && session['type'] !== undefined ? 'ga' : dialectOfKeys(session)
  }
  return type === 'response.create' ? dialectOfKeys(fields['response']) : undefined
}

function dialectOfKeys(value: unknown): RealtimeDialect | undefined {
  if (!isRecord(value)) return undefined
  if (GA_KEYS.some((key) => Object.hasOwn(value, key))) return 'ga'
  return BETA_KEYS.some((key) => Object.hasOwn(value, key)) ? 'beta' : undefined
}
