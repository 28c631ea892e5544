import { createHash } from 'node:crypto'
import { type AudioFormat, speak } from '@multi-model-gateway/sandbox/realtime/audio-format.js'
import type { RealtimeDialect } from '@multi-model-gateway/sandbox/realtime/realtime-dialect.js'
import type { RealtimeEvent, RealtimeProbe } from './realtime-probe.js'
import { RealtimeSimulatorLab } from './realtime-simulator-lab.js'

export const FRAME_BYTES = 4800
export const TRANSCRIPTION = 'conversation.item.input_audio_transcription'

/** A session that is spoken with in audio. */
export class SpokenTurnLab extends RealtimeSimulatorLab {
  /** Connects and gives the session these settings. */
  readonly start = async (dialect: RealtimeDialect, session: object, paceMs = 0): Promise<void> => {
    await this.connect(dialect, { paceMs })
    const settings = dialect === 'ga' ? { type: 'realtime', ...session } : session
    this.probe.send({ type: 'session.update', session: settings })
    await this.probe.next('session.updated')
  }

  /** Sends audio, cut into events of this size. */
  readonly append = (audio: Buffer, pieceBytes?: number): void => {
    appendAudio(this.probe, audio, pieceBytes)
  }
}

/** Sends audio, cut into events of this size. */
export function appendAudio(probe: RealtimeProbe, audio: Buffer, pieceBytes = FRAME_BYTES): void {
  for (let at = 0; at < audio.length; at += pieceBytes) {
    const piece = audio.subarray(at, at + pieceBytes)
    probe.send({ type: 'input_audio_buffer.append', audio: piece.toString('base64') })
  }
}

/** Spoken words between two silences. */
export function spoken(format: AudioFormat = 'pcm16', silenceMs = 500): Buffer {
  const silence = { pcm16: Buffer.alloc(48 * silenceMs), g711_ulaw: Buffer.alloc(8 * silenceMs, 0xff) }
  const quiet = format === 'g711_alaw' ? Buffer.alloc(8 * silenceMs, 0xd5) : silence[format]
  return Buffer.concat([quiet, ...speak('What is the weather', format, 1), quiet])
}

export const sha = (audio: Buffer): string => createHash('sha1').update(audio).digest('hex').slice(0, 12)

/** What the answer says that this `response.done` ends. */
export function transcriptOf(done: RealtimeEvent): unknown {
  return (done as { response: { output: { content: { transcript: string }[] }[] } }).response.output[0]?.content[0]
    ?.transcript
}
