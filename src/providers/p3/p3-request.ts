import { type AudioFormat, requestedFormat } from '../../dialects/audio-formats.js'
import { assertInputLength } from '../../dialects/input-too-long.js'
import { upstreamVoice, type VoiceTable } from '../../dialects/upstream-voice.js'
import type { SpeechFields } from '../speech.contract.js'
import { readP3Metadata } from './p3-metadata.js'
import { P3_VOICES } from './p3-voices.table.js'

const MAXIMUM_INPUT_CHARACTERS = 10_000
const MINIMUM_SPEED = 0.5
const MAXIMUM_SPEED = 2

/** pcm is 24 kHz, 16-bit, mono from every provider; upstream's own default is 32 kHz. */
const PCM_SETTING = { format: 'pcm', sample_rate: 24_000, channel: 1 }

/** What is asked of P3, and what its answer will be. */
export interface P3Request {
  readonly body: Buffer
  /** An event stream with hexadecimal audio; otherwise one JSON object. */
  readonly streamed: boolean
  /** The JSON object holds a link instead of audio. */
  readonly linked: boolean
  /** Format of the bytes P3 makes. */
  readonly format: AudioFormat
  /** Format the caller receives. */
  readonly sentAs: AudioFormat
  readonly fallback?: AudioFormat
}

/** What the channel says: its name for the model, and its options. */
export interface P3ChannelSettings {
  readonly upstreamModel: string
  readonly options: Readonly<Record<string, unknown>>
}

/** P3's request for a speech. Throws `invalid_request` for what P3 cannot honour. */
export function p3Request(fields: SpeechFields, { upstreamModel, options }: P3ChannelSettings): P3Request {
  assertInputLength(fields.input, MAXIMUM_INPUT_CHARACTERS)
  const { voiceSetting, subtitles, outputFormat, others } = readP3Metadata(fields.metadata)
  const formats = formatsFor(fields.response_format)
  // The configuration has checked it.
  const voiceId = upstreamVoice(fields.voice, P3_VOICES, options['voices'] as VoiceTable | undefined)
  // Subtitles and links come at the end of a plain answer; everything else is streamed, for raw audio as well.
  const streamed = !subtitles && outputFormat === 'hex'
  const request = {
    model: upstreamModel,
    text: fields.input,
    stream: streamed,
    ...(streamed ? { stream_options: { exclude_aggregated_audio: true } } : {}),
    voice_setting: { ...speedOf(fields.speed), ...voiceSetting, voice_id: voiceId },
    audio_setting: formats.format === 'pcm' ? PCM_SETTING : { format: formats.format },
    ...others,
    ...(subtitles ? { subtitle_enable: true } : {}),
    output_format: outputFormat,
  }
  const body = Buffer.from(JSON.stringify(request))
  return { body, streamed, linked: outputFormat === 'url', ...formats }
}

/** wav cannot be streamed by P3, so that its header is written here; aac has no form at P3 at all. */
function formatsFor(asked: string | null | undefined): Pick<P3Request, 'format' | 'sentAs' | 'fallback'> {
  const wanted = requestedFormat(asked)
  if (wanted === 'wav') return { format: 'pcm', sentAs: 'wav' }
  if (wanted === 'aac') return { format: 'mp3', sentAs: 'mp3', fallback: 'mp3' }
  return { format: wanted, sentAs: wanted }
}

/** The specification allows more than P3: the nearest speed it speaks at is taken. */
const speedOf = (speed: number | null | undefined): { readonly speed?: number } =>
  speed == null ? {} : { speed: Math.min(MAXIMUM_SPEED, Math.max(MINIMUM_SPEED, speed)) }
