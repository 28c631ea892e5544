import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Fault } from '../../src/sandbox/faults.js'
import { form, upload, wavOfSeconds } from '../support/audio-uploads.js'
import {
  completion,
  completionChunks,
  messageEvents,
  speechEvents,
  transcriptEvents,
  wholeMessage,
  wholeTranscript,
} from '../support/bare-answers.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { MESSAGES, messageText } from '../support/m1-gateway.js'
import type { RawRequest } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'
import { type ShownRecord, startUsageLab, type UsageLab } from '../support/usage-lab.js'

let lab: UsageLab

beforeAll(async () => {
  lab = await startUsageLab()
}, STORE_START_MS)
afterAll(() => lab.close())

const PATHS = { chat: CHAT_PATH, messages: MESSAGES } as const

/** What is recorded of a question of eight characters, when the upstream answers like this. */
async function recorded(route: keyof typeof PATHS, stream: boolean, answer: Fault): Promise<ShownRecord> {
  const body = route === 'chat' ? chatText('Hi there', { stream }) : messageText('Hi there', { stream })
  const request: RawRequest = { path: PATHS[route], body }
  const simulator = route === 'chat' ? lab.p1 : lab.m1
  simulator.queueFault(answer)
  const { record } = await lab.recorded(request)
  expect(record.outcome).toBe('ok')
  return record
}

/** Four characters to a token, four tokens for the message, three for the answer's head. */
const PROMPT = 2 + 4 + 3
/** "Hello there." */
const WORDS = 3
const CHAT_FIGURES = { prompt_tokens: 70, completion_tokens: 30, total_tokens: 100 }
const CHAT_ZEROS = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
const CHAT_ESTIMATE = { prompt_tokens: PROMPT, completion_tokens: WORDS, total_tokens: PROMPT + WORDS }

describe('Of chat', () => {
  it.each([
    ['as a whole', false, completion(CHAT_FIGURES)],
    ['as a stream', true, completionChunks(CHAT_FIGURES)],
  ])('the upstream’s figures alone are recorded where it says them: %s', async (_how, stream, answer) => {
    expect(await recorded('chat', stream, answer)).toMatchObject({
      units: { prompt_tokens: 70, completion_tokens: 30 },
      reported: CHAT_FIGURES,
      estimated: null,
      pricing: 'priced',
    })
  })

  it.each([
    ['as a whole', false, completion(CHAT_ZEROS)],
    ['as a stream', true, completionChunks(CHAT_ZEROS)],
  ])('zeros are figures: %s', async (_how, stream, answer) => {
    expect(await recorded('chat', stream, answer)).toMatchObject({
      reported: CHAT_ZEROS,
      estimated: null,
      pricing: 'free',
    })
  })

  it.each([
    ['as a whole', false, completion()],
    ['as a whole with null', false, completion(null)],
    ['as a whole with nothing in it', false, completion({})],
    ['as a stream', true, completionChunks()],
  ])('an estimate alone is recorded, and priced, where it does not: %s', async (_how, stream, answer) => {
    expect(await recorded('chat', stream, answer)).toMatchObject({
      units: { prompt_tokens: PROMPT, completion_tokens: WORDS },
      reported: null,
      estimated: CHAT_ESTIMATE,
      pricing: 'priced',
    })
  })
})

describe('Of messages', () => {
  it.each([
    ['as a whole', false, wholeMessage({ input_tokens: 70, output_tokens: 30 })],
    ['as a stream', true, messageEvents({ input_tokens: 70, output_tokens: 1 }, { output_tokens: 30 })],
  ])('the upstream’s figures alone are recorded where it says them: %s', async (_how, stream, answer) => {
    expect(await recorded('messages', stream, answer)).toMatchObject({
      units: { prompt_tokens: 70, completion_tokens: 30 },
      reported: { input_tokens: 70, output_tokens: 30 },
      estimated: null,
      pricing: 'priced',
    })
  })

  it('the input is kept as it was said, and the output estimated, where a stream says no more', async () => {
    const answer = messageEvents({ input_tokens: 70, output_tokens: 1 })
    expect(await recorded('messages', true, answer)).toMatchObject({
      units: { prompt_tokens: 70, completion_tokens: WORDS },
      reported: null,
      estimated: { input_tokens: 70, output_tokens: WORDS },
      pricing: 'priced',
    })
  })

  it.each([
    ['as a whole', false, wholeMessage()],
    ['as a stream', true, messageEvents()],
  ])('an estimate alone is recorded, and priced, where it says nothing at all: %s', async (_how, stream, answer) => {
    expect(await recorded('messages', stream, answer)).toMatchObject({
      units: { prompt_tokens: 2 + 4, completion_tokens: WORDS },
      reported: null,
      estimated: { input_tokens: 2 + 4, output_tokens: WORDS },
      pricing: 'priced',
    })
  })
})

describe('Of audio whose upstream says nothing of its use', () => {
  /** At 1,000 tokens a minute. */
  const HEARD = { input_tokens: 50, output_tokens: WORDS, total_tokens: 50 + WORDS }

  it('an estimate in tokens is recorded for speech in events', async () => {
    lab.p1.queueFault(speechEvents(Buffer.alloc(48_000)))
    const more = { model: 'gpt-4o-mini-tts', stream_format: 'sse', response_format: 'pcm' }
    const { record } = await lab.recorded({ path: SPEECH_PATH, body: speechText('Hi there', more) })
    expect(record).toMatchObject({ outcome: 'ok', reported: null, pricing: 'priced' })
    expect(record.estimated).toMatchObject({ input_tokens: 2, output_tokens: 17 })
  })

  it.each([
    ['as a whole', [], wholeTranscript()],
    ['as a stream', [['stream', 'true'] as const], transcriptEvents()],
  ])('an estimate in tokens is recorded for a transcript of class G: %s', async (_how, fields, answer) => {
    lab.p1.queueFault(answer)
    const { record } = await lab.recorded(upload(form([['model', 'gpt-4o-transcribe'], ...fields], wavOfSeconds(3))))
    expect(record).toMatchObject({ outcome: 'ok', reported: null, estimated: HEARD, pricing: 'priced' })
  })

  it('the length of the file is recorded for any other transcript, which is measured', async () => {
    lab.p1.queueFault(wholeTranscript())
    const { record } = await lab.recorded(upload(form([['model', 'whisper-1']], wavOfSeconds(3))))
    const units = { audio_seconds: 3 }
    expect(record).toMatchObject({ outcome: 'ok', units, reported: units, estimated: null, pricing: 'priced' })
  })
})
