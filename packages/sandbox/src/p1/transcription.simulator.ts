import type { Exchange } from '../server/exchange.js'
import { type OpenAiFaultOptions, openAiFaults, renderRejection } from '../server/openai-errors.js'
import { OpenAiRejection } from '../server/openai-rejection.js'
import { TranscriptTally } from '../server/served-usage.js'
import { transcriptUnits } from '../server/token-units.js'
import { transcribe } from '../transcription/transcript.js'
import { readForm, UPLOAD_LIMIT_BYTES } from '../transcription/transcription-form.js'
import type { P1Context } from './p1-context.js'
import { p1Headers } from './p1-headers.js'
import { transcriptionBody, transcriptionFrames, usageOf } from './transcription-answer.js'
import { judgeTranscription, type TranscriptionRequest } from './transcription-request.js'

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
    if (!(error instanceof OpenAiRejection)) throw error
    const refusal = renderRejection(error, options)
    await exchange.send(refusal.status, refusal.headers, refusal.body)
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
