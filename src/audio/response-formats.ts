import type { ModelClass } from '../config/channel-config.js'
import { GatewayError } from '../core/gateway-error.js'
import { quoted } from '../core/message-text.js'

/**
 * The specification's table of STT classes: class → response_format allowed. A test compares it with docs/spec.md.
 * `stt-diarize` is a class G model that also speaks `diarized_json`.
 */
export const CLASS_FORMATS = {
  'stt-standard': ['json', 'text', 'srt', 'verbose_json', 'vtt'],
  'stt-generation': ['json', 'text'],
  'stt-diarize': ['json', 'text', 'diarized_json'],
} as const satisfies Partial<Record<ModelClass, readonly string[]>>

export const RESPONSE_FORMATS: readonly string[] = [...new Set(Object.values(CLASS_FORMATS).flat())]

export const DEFAULT_RESPONSE_FORMAT = 'json'

/** Throws `unsupported_value` for a format the model's class cannot give. */
export function assertFormat(format: string, model: string, modelClass: ModelClass): void {
  const allowed: readonly string[] =
    modelClass in CLASS_FORMATS ? CLASS_FORMATS[modelClass as keyof typeof CLASS_FORMATS] : []
  if (allowed.includes(format)) return
  const suggestions = allowed.map((name) => `'${name}'`).join(' or ')
  throw new GatewayError(
    'invalid_request',
    `response_format ${quoted(format)} is not compatible with model ${quoted(model)}. Use ${suggestions} instead.`,
    { param: 'response_format', code: 'unsupported_value' },
  )
}
