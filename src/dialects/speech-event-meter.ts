import type { Units, Usage, UsageMeter } from '../core/request-context.js'
import type { FrameCounter } from '../upstream/sse-relay.js'
import type { AudioFormat } from './audio-formats.js'
import { speechSeconds, withSeconds } from './speech-meter.js'
import { estimateSpeechUsage } from './speech-response.js'

const KEY = Buffer.from('"audio":"')
const LOWER_D = 0x64
const QUOTE = 0x22
const PADDING = 0x3d

/** Counts the bytes of audio in `speech.audio.delta` events; only the ends of each base64 text are looked at. */
export class AudioCounter implements FrameCounter {
  /** Bytes. */
  count = 0

  line(bytes: Buffer, start: number, end: number): void {
    if (bytes[start] !== LOWER_D) return
    const key = bytes.indexOf(KEY, start)
    if (key === -1 || key >= end) return
    const audio = key + KEY.length
    const audioEnd = bytes.indexOf(QUOTE, audio)
    if (audioEnd === -1 || audioEnd > end) return
    const padding = Number(bytes[audioEnd - 1] === PADDING) + Number(bytes[audioEnd - 2] === PADDING)
    this.count += Math.max(0, Math.floor(((audioEnd - audio) * 3) / 4) - padding)
  }
}

/** What relayed speech events have used as long as `speech.audio.done` has not come: tokens, as that one would say. */
export class SpeechEventMeter implements UsageMeter {
  constructor(
    private readonly input: string,
    private readonly format: AudioFormat,
    private readonly audio: Pick<AudioCounter, 'count'>,
  ) {}

  usageSoFar(): Usage | undefined {
    if (this.audio.count === 0) return undefined
    const seconds = speechSeconds(this.format, this.audio.count)
    // Where the bytes do not tell how much was said, the whole text counts as said.
    const usage = estimateSpeechUsage(this.input, seconds === undefined ? {} : { audioMs: seconds * 1000 })
    const { input_tokens, output_tokens, total_tokens } = usage
    return { units: withSeconds({ input_tokens, output_tokens, total_tokens }, seconds), estimated: true }
  }

  /** All of it: the text has no more than 4096 characters. */
  counted(): Units | undefined {
    return this.usageSoFar()?.units
  }
}
