import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
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
/** Of a stream, whose pieces are counted as they pass; a whole answer is looked at for nothing but its figures. */
const CHAT_PIECES = { completion_tokens: WORDS }
const CHAT_ESTIMATE = { prompt_tokens: PROMPT, completion_tokens: WORDS, total_tokens: PROMPT + WORDS }

describe('Of chat', () => {
  it.each([
    ['as a whole, alone', false, completion(CHAT_FIGURES), null],
    ['as a stream, beside the pieces that came', true, completionChunks(CHAT_FIGURES), CHAT_PIECES],
  ])(
    'the upstream’s figures are recorded, and paid, where it says them: %s',
    async (_how, stream, answer, estimated) => {
      const record = await recorded('chat', stream, answer)
      expect(record).toMatchObject({
        units: { prompt_tokens: 70, completion_tokens: 30 },
        reported: CHAT_FIGURES,
        pricing: 'priced',
      })
      expect(record.estimated).toEqual(estimated)
    },
  )

  it.each([
    ['as a whole', false, completion(CHAT_ZEROS), null],
    ['as a stream', true, completionChunks(CHAT_ZEROS), CHAT_PIECES],
  ])('zeros are figures: %s', async (_how, stream, answer, estimated) => {
    const record = await recorded('chat', stream, answer)
    expect(record).toMatchObject({ reported: CHAT_ZEROS, pricing: 'free', cost: '0' })
    expect(record.estimated).toEqual(estimated)
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
    ['as a whole, alone', false, wholeMessage({ input_tokens: 70, output_tokens: 30 }), null],
    [
      'as a stream, beside the pieces that came',
      true,
      messageEvents({ input_tokens: 70, output_tokens: 1 }, { output_tokens: 30 }),
      { output_tokens: WORDS },
    ],
  ])(
    'the upstream’s figures are recorded, and paid, where it says them: %s',
    async (_how, stream, answer, estimated) => {
      const record = await recorded('messages', stream, answer)
      expect(record).toMatchObject({
        units: { prompt_tokens: 70, completion_tokens: 30 },
        reported: { input_tokens: 70, output_tokens: 30 },
        pricing: 'priced',
      })
      expect(record.estimated).toEqual(estimated)
    },
  )

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

/** Three seconds at 1,000 tokens a minute. */
const HEARD = { input_tokens: 50, output_tokens: WORDS, total_tokens: 50 + WORDS }

describe('Of audio whose upstream says its figures', () => {
  it('the tokens of its text and its sound stand beside those of speech in events', async () => {
    const usage = { input_tokens: 7, output_tokens: 70, total_tokens: 77 }
    lab.p1.queueFault(speechEvents(Buffer.alloc(48_000), usage))
    const more = { model: 'gpt-4o-mini-tts', stream_format: 'sse', response_format: 'pcm' }
    const { record } = await lab.recorded({ path: SPEECH_PATH, body: speechText('Hi there', more) })
    expect(record).toMatchObject({
      outcome: 'ok',
      units: { prompt_tokens: 7, completion_tokens: 70 },
      reported: usage,
      pricing: 'priced',
    })
    expect(record.estimated).toEqual({ input_tokens: 2, output_tokens: 17, total_tokens: 19, spoken_seconds: 1 })
  })

  it('the length of the file and the pieces that came stand beside those of a transcript as a stream', async () => {
    const usage = { type: 'tokens', input_tokens: 70, output_tokens: 30, total_tokens: 100 }
    lab.p1.queueFault(transcriptEvents(usage))
    const fields = [['model', 'gpt-4o-transcribe'] as const, ['stream', 'true'] as const]
    const { record } = await lab.recorded(upload(form(fields, wavOfSeconds(3))))
    expect(record).toMatchObject({
      outcome: 'ok',
      units: { prompt_tokens: 70, completion_tokens: 30 },
      reported: { input_tokens: 70, output_tokens: 30, total_tokens: 100 },
      pricing: 'priced',
    })
    const details = { text_tokens: 0, audio_tokens: 50 }
    expect(record.estimated).toEqual({ ...HEARD, input_token_details: details, audio_seconds: 3 })
  })
})

describe('Of audio whose upstream says nothing of its use', () => {
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
