import { type Segment, timedWords, type Transcript } from '../transcription/transcript.js'
import { durationUsage, srt, tokenUsage, verboseJson, vtt } from '../transcription/whisper-formats.js'
import type { TranscriptionRequest } from './transcription-request.js'

/** The body of an ordinary answer: text for `text`, `srt` and `vtt`, otherwise an object to be sent as JSON. */
export function transcriptionBody(request: TranscriptionRequest, transcript: Transcript): string | object {
  const usage = usageOf(request, transcript)
  switch (request.format) {
    case 'text':
      return `${transcript.text}\n`
    case 'srt':
      return srt(transcript)
    case 'vtt':
      return vtt(transcript)
    case 'verbose_json':
      return { ...verboseJson(transcript, verboseOptions(request)), usage }
    case 'diarized_json':
      return { text: diarizedText(request, transcript), segments: speakerSegments(request, transcript), usage }
    default:
      return { text: transcript.text, ...extras(request, transcript), usage }
  }
}

/** The CRLF frames of a streamed answer (section 3.4 of the audio notes). */
export function* transcriptionFrames(request: TranscriptionRequest, transcript: Transcript): Generator<string> {
  const isDiarized = request.format === 'diarized_json'
  if (isDiarized) {
    for (const segment of speakerSegments(request, transcript)) yield frame(segment)
  } else {
    for (const piece of transcript.text.match(/\s*\S+/g) ?? []) {
      const logprobs = request.logprobs ? { logprobs: [logprob(piece)] } : {}
      const segment = request.family === 'diarize' ? { segment_id: 'seg_0' } : {}
      yield frame({ type: 'transcript.text.delta', delta: piece, ...logprobs, ...segment })
    }
  }
  const text = isDiarized ? diarizedText(request, transcript) : transcript.text
  const usage = usageOf(request, transcript)
  yield frame({ type: 'transcript.text.done', text, ...extras(request, transcript), usage })
  yield 'data: [DONE]\r\n\r\n'
}

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\r\n\r\n`
}

export function usageOf(request: TranscriptionRequest, transcript: Transcript): object {
  if (request.family === 'whisper') return durationUsage(transcript.seconds)
  return tokenUsage(transcript, request.prompt, request.audioTokensPerMinute)
}

function verboseOptions(request: TranscriptionRequest): Parameters<typeof verboseJson>[1] {
  const { task, granularities } = request
  return { task, granularities, language: task === 'translate' ? 'english' : request.language }
}

function extras(request: TranscriptionRequest, transcript: Transcript): object {
  const logprobs = request.logprobs ? { logprobs: timedWords(transcript).map((word) => logprob(word.text)) } : {}
  if (request.family !== 'gpt-transcribe') return logprobs
  const codes = request.languageCodes.length > 0 ? request.languageCodes : ['en']
  return { languages: codes.map((code) => ({ code })) }
}

function logprob(token: string): object {
  return { token, logprob: -0.0001, bytes: [...Buffer.from(token)] }
}

function speakerOf(request: TranscriptionRequest, index: number): string {
  return request.speakers[index] ?? String.fromCharCode('A'.charCodeAt(0) + index)
}

function speakerSegments(request: TranscriptionRequest, transcript: Transcript): object[] {
  return transcript.segments.map((segment: Segment, index) => ({
    type: 'transcript.text.segment',
    text: ` ${segment.text}`,
    speaker: speakerOf(request, index),
    start: segment.startSeconds,
    end: segment.endSeconds,
    id: `seg_${index}`,
  }))
}

function diarizedText(request: TranscriptionRequest, transcript: Transcript): string {
  return transcript.segments.map((segment, index) => `${speakerOf(request, index)}: ${segment.text}`).join('\n')
}
