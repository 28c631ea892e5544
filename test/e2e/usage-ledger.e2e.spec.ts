import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { toFile } from 'openai'
import { wavOfSeconds } from '../support/audio-uploads.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { anthropic0, message, MESSAGES, messageText } from '../support/m1-gateway.js'
import { openai6 } from '../support/openai-clients.js'
import { p2Text } from '../support/p2-gateway.js'
import { p3Text } from '../support/p3-gateway.js'
import { openRaw, type RawRequest, sendRaw } from '../support/raw-http.js'
import { speakTo, talk } from '../support/realtime-turns.js'
import { STORE_START_MS } from '../support/stores.js'
import { expectedCost, recordedCost } from '../support/expected-costs.js'
import { answersOf, P2_RUN_MODEL, P4_RUN_MODEL, startUsageRun, type UsageRun } from '../support/usage-run.js'
import { VideoCaller } from '../support/video-caller.js'

const ROUNDS = 8
const RUN_MS = 240_000

let lab: UsageRun

beforeAll(async () => {
  lab = await startUsageRun()
}, STORE_START_MS)
afterAll(() => lab.close())

/** Whole numbers from 1 to `most`, the same in every run (a linear congruential generator). */
function seeded(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return 1 + Math.floor((state / 2 ** 32) * most)
  }
}

/** Reads until the bytes so far are enough, and leaves. */
async function leaveAfter(raw: RawRequest, isEnough: (text: string) => boolean): Promise<void> {
  const response = await openRaw(lab.gateway.url, raw)
  let text = ''
  // Whoever stops reading here leaves.
  for await (const chunk of response) {
    text += (chunk as Buffer).toString('latin1')
    if (isEnough(text)) break
  }
}

const frames = (count: number) => (text: string) => text.split('\n\n').length > count
const anything = (text: string): boolean => text.length > 0

async function complete(raw: RawRequest): Promise<void> {
  expect(await sendRaw(lab.gateway.url, raw)).toMatchObject({ status: 200, complete: true })
}

const speech = (body: string): RawRequest => ({ path: SPEECH_PATH, body })

async function transcribe(model: string, seconds: number, more: object = {}): Promise<void> {
  const file = await toFile(wavOfSeconds(seconds), 'speech.wav')
  const answer: unknown = await openai6(lab.gateway).audio.transcriptions.create({ model, file, ...more })
  // Streams are read to their end.
  if (Symbol.asyncIterator in Object(answer)) await Readable.from(answer as AsyncIterable<unknown>).toArray()
}

async function makeVideo(): Promise<void> {
  const caller = new VideoCaller(lab.gateway)
  const id = await caller.created()
  await eventually(async () => (await caller.read(id)).body.data.task_status === 'succeed')
}

/** One round: every kind of call, with figures drawn. Each counts as so many records. */
function callsOf(draw: (most: number) => number): readonly (readonly [records: number, run: () => Promise<unknown>])[] {
  const [words, held, seconds] = [draw(60), draw(20), draw(9)]
  const openai = openai6(lab.gateway)
  const anthropic = anthropic0(lab.gateway)
  const text = `#chunks=${words}`
  const ask = { model: 'gpt-4o-mini', messages: [{ role: 'user' as const, content: text }] }
  const heldText = `#chunks=50 #hold=${held}`
  return [
    [1, () => openai.chat.completions.create(ask)],
    [1, () => openai.chat.completions.stream({ ...ask, n: 2 }).finalChatCompletion()],
    [1, () => leaveAfter({ path: CHAT_PATH, body: chatText(heldText, { stream: true }) }, frames(held))],
    [1, () => leaveAfter({ path: CHAT_PATH, body: chatText(`日本 ${heldText}`, ASKING) }, frames(held))],
    [1, () => anthropic.messages.create(message(text))],
    [1, () => anthropic.messages.stream(message(text)).finalMessage()],
    [1, () => leaveAfter({ path: MESSAGES, body: messageText(heldText, { stream: true }) }, frames(held))],
    [1, () => complete(speech(speechText(`Hello ${text}`)))],
    [1, () => complete(speech(speechText('Hello you', { model: 'gpt-4o-mini-tts', stream_format: 'sse' })))],
    [1, () => leaveAfter(speech(speechText('#bytes=4000000', { response_format: 'pcm' })), anything)],
    [1, () => complete(speech(p2Text('A sentence. '.repeat(words), P2)))],
    [1, () => complete(speech(p2Text('你好', { ...P2, stream_format: 'sse' })))],
    [1, () => leaveAfter(speech(p2Text(`#slow ${'one '.repeat(words)}`, P2)), anything)],
    [1, () => complete(speech(p3Text(`你好 ${'one '.repeat(words)}`)))],
    [1, () => complete(speech(p3Text('#nousage 你好 you', { stream_format: 'sse' })))],
    [1, () => leaveAfter(speech(p3Text('#bytes=4000000 你', { response_format: 'pcm' })), anything)],
    [1, () => transcribe('whisper-1', seconds)],
    [1, () => transcribe('gpt-4o-transcribe', seconds)],
    [1, () => transcribe('gpt-4o-mini-transcribe', seconds, { stream: true })],
    [1, () => transcribe('gpt-4o-transcribe-diarize', seconds, { response_format: 'diarized_json' })],
    [1, () => transcribe(P4_RUN_MODEL, seconds)],
    // The session and its response.
    [2, () => talk(lab.gateway, '#words=7')],
    // The session, what was said in it, and its response.
    [3, () => speakTo(lab.gateway)],
    // The create and the task.
    [2, makeVideo],
  ]
}

const P2 = { model: P2_RUN_MODEL }
const ASKING = { stream: true, stream_options: { include_usage: true } }

describe('The accounts of a mixed run', () => {
  it(
    'say what the upstreams say they served, to the unit, and leave nothing unpriced',
    async () => {
      const draw = seeded(20_261_122)
      let records = 0
      for (let round = 0; round < ROUNDS; round++) {
        const calls = callsOf(draw)
        await Promise.all(calls.map(([, run]) => run()))
        records += calls.reduce((sum, [count]) => sum + count, 0)
      }
      await lab.idle()
      await eventually(async () => (await lab.sums()).reduce((sum, each) => sum + each.records, 0) === records)
      const sums = await lab.sums()
      expect(sums.filter(({ unpricedRecords }) => unpricedRecords > 0)).toEqual([])
      const accounts: Record<string, Record<string, unknown>> = {}
      for (const { channelId, model, units } of sums) {
        const used = Object.fromEntries(Object.entries(units).filter(([, quantity]) => quantity > 0))
        accounts[channelId ?? ''] = { ...accounts[channelId ?? ''], [model ?? '']: used }
      }
      expect(accounts).toEqual(lab.served())
      // Errors that cancel each other would be seen here: one caller too many, another too few.
      const all = await lab.records()
      const used = all.filter(({ units }) => Object.values(units).some((quantity) => quantity > 0))
      expect(answersOf(used)).toEqual(lab.answers())
      expect(used.filter((record) => recordedCost(record) !== expectedCost(record, lab.prices))).toEqual([])
      expect(all.filter(({ kind }) => kind === 'input_transcription')).toHaveLength(ROUNDS)
    },
    RUN_MS,
  )
})
