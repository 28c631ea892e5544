import { randomBytes } from 'node:crypto'
import { synthesizeSpeech } from '../audio/speech-synthesizer.js'
import type { ChatAudioFormat } from './chat-request.js'
import type { P1Context } from './p1-context.js'

/** Seconds a spoken answer can be referred to. */
const LIFETIME_S = 3600

export interface SpokenAnswer {
  readonly id: string
  /** Unix seconds. */
  readonly expiresAt: number
  readonly bytes: Iterable<Buffer>
}

/** Speaks the words and remembers the answer's id for follow-up turns. */
export function speakAnswer(context: P1Context, words: string, format: ChatAudioFormat): SpokenAnswer {
  const id = `audio_${randomBytes(16).toString('hex')}`
  const expiresAt = Math.floor(Date.now() / 1000) + LIFETIME_S
  context.audioAnswers.set(id, expiresAt)
  const bytes = synthesizeSpeech(words, { format: format === 'pcm16' ? 'pcm' : format, speed: 1 })
  return { id, expiresAt, bytes }
}
