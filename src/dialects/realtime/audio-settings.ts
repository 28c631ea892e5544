import { RawObject } from '../../core/json-object.js'
import { stringAt } from '../../core/json-spans.js'

/** `undefined`: the other dialect has no word for this value, which stays where it is for the upstream to judge. */
type Conversion = (value: Buffer) => Buffer | undefined

/** A flat key of beta and its place under `audio` in GA. */
export interface AudioSetting {
  readonly beta: string
  readonly half: 'input' | 'output'
  readonly ga: string
  readonly toGa: Conversion
  readonly toBeta: Conversion
}

/** Hertz; GA spells it out, beta means it. */
const PCM_RATE = '24000'

const FORMATS: readonly (readonly [beta: string, ga: string, text: string])[] = [
  ['pcm16', 'audio/pcm', `{"type":"audio/pcm","rate":${PCM_RATE}}`],
  ['g711_ulaw', 'audio/pcmu', '{"type":"audio/pcmu"}'],
  ['g711_alaw', 'audio/pcma', '{"type":"audio/pcma"}'],
]

const same: Conversion = (value) => value

const formatToGa: Conversion = (value) => {
  if (isNull(value)) return value
  const name = stringAt(value, 0, value.length)
  const known = FORMATS.find(([beta]) => beta === name)
  return known === undefined ? undefined : Buffer.from(known[2])
}

const formatToBeta: Conversion = (value) => {
  if (isNull(value)) return value
  const format = RawObject.parse(value)
  const rate = format?.get('rate')?.toString()
  const known = FORMATS.find(([, ga]) => ga === format?.text('type'))
  if (known === undefined) return undefined
  return known[0] === 'pcm16' && rate !== undefined && rate !== PCM_RATE ? undefined : Buffer.from(`"${known[0]}"`)
}

export const OUTPUT_SETTINGS: readonly AudioSetting[] = [
  { beta: 'output_audio_format', half: 'output', ga: 'format', toGa: formatToGa, toBeta: formatToBeta },
  { beta: 'voice', half: 'output', ga: 'voice', toGa: same, toBeta: same },
]

export const SESSION_SETTINGS: readonly AudioSetting[] = [
  { beta: 'input_audio_format', half: 'input', ga: 'format', toGa: formatToGa, toBeta: formatToBeta },
  { beta: 'input_audio_transcription', half: 'input', ga: 'transcription', toGa: same, toBeta: same },
  { beta: 'input_audio_noise_reduction', half: 'input', ga: 'noise_reduction', toGa: same, toBeta: same },
  { beta: 'turn_detection', half: 'input', ga: 'turn_detection', toGa: same, toBeta: same },
  ...OUTPUT_SETTINGS,
  { beta: 'speed', half: 'output', ga: 'speed', toGa: same, toBeta: same },
]

/** Moves the flat audio settings of beta to where GA has them. */
export function nestAudio(object: RawObject, settings: readonly AudioSetting[]): void {
  for (const { beta, half, ga, toGa } of settings) {
    const value = object.get(beta)
    const converted = value === undefined ? undefined : toGa(value)
    if (converted === undefined) continue
    object.take(beta)
    object.objectOrNew('audio').objectOrNew(half).set(ga, converted)
  }
}

/** Moves the audio settings of GA to the flat keys of beta; what beta has no key for stays under `audio`. */
export function flattenAudio(object: RawObject, settings: readonly AudioSetting[]): void {
  const audio = object.object('audio')
  if (audio === undefined) return
  for (const { beta, half, ga, toBeta } of settings) {
    const value = audio.object(half)?.get(ga)
    const converted = value === undefined ? undefined : toBeta(value)
    if (converted === undefined) continue
    audio.object(half)?.take(ga)
    object.set(beta, converted)
  }
  for (const half of ['input', 'output']) if (audio.object(half)?.isEmpty === true) audio.take(half)
  if (audio.isEmpty) object.take('audio')
}

const isNull = (value: Buffer): boolean => value.toString('latin1') === 'null'
