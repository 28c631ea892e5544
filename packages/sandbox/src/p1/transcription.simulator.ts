import type { Exchange } from '../server/exchange.js'
import { type OpenAiFaultOptions, openAiFaults, OpenAiRejection, sendRejection } from '../server/openai-errors.js'
import { TranscriptTally, transcriptUnits } from '../server/served-usage.js'
import {
  durationUsage,
  type Segment,
  srt,
  timedWords,
  tokenUsage,
  transcribe,
  type Transcript,
  verboseJson,
  vtt,
} from '../transcription/transcript.js'
import { readForm, UPLOAD_LIMIT_BYTES } from '../transcription/transcription-form.js'
import { type P1Context, p1Headers } from './p1-context.js'
import { judgeTranscription, type TranscriptionRequest } from './transcription-request.js'

/** The body of an ordinary answer: text for `text`, `srt` and `vtt`, otherwise an object to be sent as JSON. */
function transcriptionBody(request: TranscriptionRequest, transcript: Transcript): string | object {
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
function* transcriptionFrames(request: TranscriptionRequest, transcript: Transcript): Generator<string> {
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

function usageOf(request: TranscriptionRequest, transcript: Transcript): object {
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

/** POST /v1/audio/transcriptions. */
export function serveTranscription(exchange: Exchange, context: P1Context): Promise<void> {
  return serve(exchange, 'transcribe', context)
}

/** POST /v1/audio/translations. */
export function serveTranslation(exchange: Exchange, context: P1Context): Promise<void> {
  return serve(exchange, 'translate', context)
}

async function serve(exchange: Exchange, task: 'transcribe' | 'translate', context: P1Context): Promise<void> {
  const headers = p1Headers(exchange, { tokenLimits: false })
  const options: OpenAiFaultOptions = { headers, render: (body) => JSON.stringify(body), lineEnd: '\r\n' }
  const form = await readForm(exchange, UPLOAD_LIMIT_BYTES)
  const prompt = form instanceof OpenAiRejection ? undefined : form.text('prompt')
  if (await exchange.answeredByFault(openAiFaults(options), prompt)) return
  try {
    if (form instanceof OpenAiRejection) throw form
    await answer(exchange, judgeTranscription(form, task, context), options)
  } catch (error) {
    await sendRejection(exchange, error, options)
  }
}

async function answer(exchange: Exchange, request: TranscriptionRequest, options: OpenAiFaultOptions): Promise<void> {
  // Models billed by token announce token limits too; whisper only the request triple.
  const headers = request.family === 'whisper' ? options.headers : p1Headers(exchange, { tokenLimits: true })
  const transcript = transcribe(request.facts, request.task)
  const units = transcriptUnits(usageOf(request, transcript))
  if (request.stream) {
    const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' }
    const frames = transcriptionFrames(request, transcript)
    const tally = new TranscriptTally(units)
    await exchange.stream(200, { ...headers, ...streamHeaders }, frames, openAiFaults(options), tally.note)
    exchange.serve(request.model, tally.units)
    return
  }
  if (exchange.takeErrorFrame())
    throw new OpenAiRejection(500, 'The server had an error while processing your request.', { type: 'server_error' })
  exchange.serve(request.model, units)
  const body = transcriptionBody(request, transcript)
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json'
  await exchange.send(200, { ...headers, 'content-type': type }, typeof body === 'string' ? body : JSON.stringify(body))
}
