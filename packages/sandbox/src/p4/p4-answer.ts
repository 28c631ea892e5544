import { randomBytes } from 'node:crypto'
import type { Transcript } from '../transcription/transcript.js'
import { durationUsage, srt, verboseJson, vtt } from '../transcription/whisper-formats.js'
import type { P4Mode, P4Request } from './p4-request.js'

/** The answer: text for `text`, `srt` and `vtt`, otherwise an object to be sent as JSON. */
export function p4Body(request: P4Request, transcript: Transcript, mode: P4Mode): string | object {
  const extra =
    mode === 'groq'
      ? { x_groq: { id: `req_${randomBytes(13).toString('hex')}` } }
      : { usage: durationUsage(transcript.seconds) }
  // This host begins the text with a space, as whisper's own segments do.
  const text = ` ${transcript.text}`
  switch (request.format) {
    case 'text':
      return `${text}\n`
    case 'srt':
      return srt(transcript)
    case 'vtt':
      return vtt(transcript)
    case 'verbose_json': {
      const language = mode === 'groq' ? capitalised(request.language) : request.language
      const { task, granularities } = request
      return { ...verboseJson(transcript, { task, granularities, language }), text, ...extra }
    }
    default:
      return { text, ...extra }
  }
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
