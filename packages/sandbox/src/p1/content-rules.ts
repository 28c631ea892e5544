import { fieldOf, type JsonObject, textOf } from '../server/json-value.js'
import { reject } from '../server/openai-rejection.js'
import type { P1Family } from './p1-models.js'
import { missing, object, oneOf, string } from './value-rules.js'

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const WEB_OR_DATA_URL = /^(https?:\/\/|data:)/

/** Judges one content part of a user message (section 2 of the chat notes). Throws OpenAiRejection. */
export function judgeUserPart(part: JsonObject, path: string, family: P1Family, messageIndex: number): void {
  oneOf('text', 'image_url', 'input_audio', 'refusal', 'audio', 'file')(part['type'], `${path}.type`)
  const type = textOf(part['type'])
  if (type === 'text') {
    string()(part['text'], `${path}.text`)
    return
  }
  if (part[type] === undefined) missing(`${path}.${type}`)
  object(part[type], `${path}.${type}`)
  if (type === 'image_url') judgeImage(part[type], `${path}.image_url`)
  if (type === 'input_audio') judgeAudioPart(part[type], `${path}.input_audio`, family, messageIndex)
}

function judgeImage(image: unknown, path: string): void {
  const url = fieldOf(image, 'url')
  string()(url, `${path}.url`)
  if (!WEB_OR_DATA_URL.test(textOf(url)))
    reject(`Invalid '${path}.url': expected a URL.`, `${path}.url`, 'invalid_image_url')
  const detail = fieldOf(image, 'detail')
  if (detail !== undefined) oneOf('auto', 'low', 'high')(detail, `${path}.detail`)
}

function judgeAudioPart(audio: unknown, path: string, family: P1Family, messageIndex: number): void {
  if (family !== 'audio-chat') {
    const message = `Invalid 'messages[${messageIndex}]'. Content blocks are expected to be either text or image_url type.`
    reject(message, `messages[${messageIndex}]`, 'invalid_value')
  }
  const data = fieldOf(audio, 'data')
  string()(data, `${path}.data`)
  const format = fieldOf(audio, 'format')
  if (format === undefined) missing(`${path}.format`)
  oneOf('wav', 'mp3')(format, `${path}.format`)
  const text = textOf(data)
  if (!BASE64.test(text) || text.length % 4 !== 0 || text === '') {
    reject(
      `Invalid '${path}.data': expected base64 encoded audio without a data URL prefix.`,
      `${path}.data`,
      'invalid_value',
    )
  }
  judgeMagic(Buffer.from(text.slice(0, 16), 'base64'), textOf(format), messageIndex)
}

function judgeMagic(head: Buffer, format: string, messageIndex: number): void {
  const isWav = head.subarray(0, 4).toString('latin1') === 'RIFF'
  const isMp3 =
    head.subarray(0, 3).toString('latin1') === 'ID3' || (head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0)
  if (format === 'wav' ? isWav : isMp3) return
  const message =
    "The data provided for 'input_audio' is not of valid " + format + ' format. Please provide valid audio.'
  reject(message, `messages[${messageIndex}]`, 'invalid_value')
}
