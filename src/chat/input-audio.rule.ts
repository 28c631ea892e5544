import { fault, type FieldRule, oneOf, record, required, text } from '../core/validation-rules.js'

/** Upstream reads plain base64; a data URL would be billed as noise or refused after the upload. */
const plainBase64: FieldRule = (value, path) => {
  const shape = text({ allowBlank: false })(value, path)
  if (shape !== undefined || typeof value !== 'string') return shape
  return value.startsWith('data:')
    ? fault(path, 'invalid_value', `Invalid '${path}': expected plain base64 without a data: prefix.`)
    : undefined
}

/** The payload of a content part of type `input_audio`. */
export const inputAudio: FieldRule = record({
  data: required(plainBase64),
  format: required(oneOf(['wav', 'mp3'], 'invalid_audio_format')),
})
