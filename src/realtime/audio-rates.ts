import { isRecord } from '../core/validation-rules.js'

/** Upstreams count audio by these. */
export const HEARD_TOKENS_PER_SECOND = 10
export const SPOKEN_TOKENS_PER_SECOND = 20

/** 24 kHz, two bytes to a sample. */
export const PCM_BYTES_PER_SECOND = 48_000
/** 8 kHz, a byte to a sample. */
const G711_BYTES_PER_SECOND = 8_000

const G711: ReadonlySet<unknown> = new Set(['g711_ulaw', 'g711_alaw', 'audio/pcmu', 'audio/pcma'])

type Half = 'input' | 'output'

/**
 * Bytes to a second of the audio that a session, or a response, hears or speaks, in the form of either dialect;
 * undefined where it does not say.
 */
export function bytesPerSecond(settings: Readonly<Record<string, unknown>>, half: Half): number | undefined {
  const audio = settings['audio']
  const side = isRecord(audio) ? audio[half] : undefined
  const nested = isRecord(side) ? side['format'] : undefined
  const format = isRecord(nested) ? nested['type'] : settings[`${half}_audio_format`]
  if (format == null) return undefined
  return G711.has(format) ? G711_BYTES_PER_SECOND : PCM_BYTES_PER_SECOND
}
