import { Readable } from 'node:stream'
import { expect } from '@jest/globals'
import { toFile } from 'openai'
import { eventually } from './eventually.js'
import { CHAT_PATH, chatText, openRaw, type RawRequest, sendRaw, SPEECH_PATH, speechText, TEST_KEY } from './gateway.js'
import { anthropic0, message, MESSAGES, messageText } from './m1-gateway.js'
import { p2Text, p3Text } from './provider-gateways.js'
import { appendAudio, RealtimeProbe, spoken, TRANSCRIPTION } from './realtime-probe.js'
import { openai6 } from './sdk-clients.js'
import { form, TRANSCRIPTIONS, upload, wavOfSeconds } from './upload-server.js'
import { P2_RUN_MODEL, P4_RUN_MODEL, type RunCall, type UsageRun } from './usage-run.js'
import { VideoCaller } from './video-caller.js'

interface Address {
  readonly url: string
}

/** One answer, asked for by instructions alone, whose client leaves in the middle of it. */
async function leaveAnswer(gateway: Address, words: number): Promise<void> {
  const probe = await instructed(gateway, `#stall ${'word '.repeat(words)}`)
  await probe.until('response.output_audio.delta')
  probe.socket.close()
  await probe.closed
}

/** The same, whose upstream drops the connection in the middle of it. */
async function loseAnswer(gateway: Address, words: number): Promise<void> {
  const probe = await instructed(gateway, `#drop ${'word '.repeat(words)}`)
  await probe.until('response.output_audio.delta')
  await probe.closed
}

async function instructed({ url }: Address, instructions: string): Promise<RealtimeProbe> {
  const probe = await RealtimeProbe.open({ url: url.replace('http', 'ws'), key: TEST_KEY, model: 'gpt-realtime' })
  const input = { turn_detection: null }
  probe.send({ type: 'session.update', session: { type: 'realtime', instructions, audio: { input } } })
  await probe.next('session.updated')
  probe.send({ type: 'response.create' })
  return probe
}

interface GatewayAddress {
  readonly url: string
}

/** One turn in text, answered in speech. */
async function talk(gateway: GatewayAddress, words: string): Promise<void> {
  const url = gateway.url.replace('http', 'ws')
  const probe = await RealtimeProbe.open({ url, key: TEST_KEY, model: 'gpt-realtime' })
  const content = [{ type: 'input_text', text: words }]
  probe.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
  probe.send({ type: 'response.create' })
  await probe.until('response.done')
  probe.socket.close()
  await probe.closed
}

/** One turn that is spoken, written down by the upstream, and answered. */
async function speakTo(gateway: GatewayAddress): Promise<void> {
  const url = gateway.url.replace('http', 'ws')
  const probe = await RealtimeProbe.open({ url, key: TEST_KEY, model: 'gpt-realtime' })
  const input = { transcription: { model: 'gpt-4o-mini-transcribe' }, turn_detection: null }
  probe.send({ type: 'session.update', session: { type: 'realtime', audio: { input } } })
  await probe.next('session.updated')
  appendAudio(probe, spoken())
  probe.send({ type: 'input_audio_buffer.commit' })
  await probe.next(`${TRANSCRIPTION}.completed`)
  probe.send({ type: 'response.create' })
  await probe.until('response.done')
  probe.socket.close()
  await probe.closed
}

const REALTIME = '/v1/realtime'
const P2 = { model: P2_RUN_MODEL }
/** More than its least budget. */
const THINKING = { max_tokens: 4000, thinking: { type: 'enabled' as const, budget_tokens: 2000 } }

const one = (path: string, figures: string): Pick<RunCall, 'leaves'> => ({ leaves: [`request ${path} ok ${figures}`] })

/** Every kind of call that comes to its end, with figures drawn: `draw` gives whole numbers from 1. */
export function servedCalls(run: UsageRun, draw: (most: number) => number): readonly RunCall[] {
  return [...written(run, draw(60)), ...spokenCalls(run, draw(60)), ...heard(run, draw(9)), ...lasting(run)]
}

function written({ gateway }: UsageRun, words: number): readonly RunCall[] {
  const { completions } = openai6(gateway).chat
  const { messages } = anthropic0(gateway)
  const text = `#chunks=${words}`
  const ask = { model: 'gpt-4o-mini', messages: [{ role: 'user' as const, content: text }] }
  const reasoning = { ...ask, model: 'o4-mini', reasoning_effort: 'low' as const }
  const chat = one(CHAT_PATH, 'reported')
  const family = one(MESSAGES, 'reported')
  // The pieces of a stream are counted as well.
  const chatStream = one(CHAT_PATH, 'both')
  const familyStream = one(MESSAGES, 'both')
  return [
    { ...chat, run: () => completions.create(ask) },
    { ...chatStream, run: () => completions.stream({ ...ask, n: 2 }).finalChatCompletion() },
    { ...chat, run: () => completions.create({ ...reasoning, n: 2 }) },
    { ...chatStream, run: () => completions.stream({ ...reasoning, reasoning_effort: 'high' }).finalChatCompletion() },
    { ...family, run: () => messages.create(message(text)) },
    { ...familyStream, run: () => messages.stream(message(text)).finalMessage() },
    { ...familyStream, run: () => messages.stream(message(text, THINKING)).finalMessage() },
  ]
}

function spokenCalls({ gateway }: UsageRun, words: number): readonly RunCall[] {
  const speech = (figures: string, body: string): RunCall => ({
    ...one(SPEECH_PATH, figures),
    run: async () => {
      expect(await sendRaw(gateway.url, { path: SPEECH_PATH, body })).toMatchObject({ status: 200, complete: true })
    },
  })
  return [
    speech('estimated', speechText(`Hello #chunks=${words}`)),
    speech('both', speechText('Hello you', { model: 'gpt-4o-mini-tts', stream_format: 'sse' })),
    speech('estimated', p2Text('A sentence. '.repeat(words), P2)),
    speech('estimated', p2Text('你好', { ...P2, stream_format: 'sse' })),
    speech('both', p3Text(`你好 ${'one '.repeat(words)}`)),
    speech('estimated', p3Text('#nousage 你好 you', { stream_format: 'sse' })),
  ]
}

function heard({ gateway }: UsageRun, seconds: number): readonly RunCall[] {
  const transcript = (figures: string, model: string, more: object = {}): RunCall => ({
    ...one(TRANSCRIPTIONS, figures),
    run: async () => {
      const file = await toFile(wavOfSeconds(seconds), 'speech.wav')
      const answer: unknown = await openai6(gateway).audio.transcriptions.create({ model, file, ...more })
      // Streams are read to their end.
      if (Symbol.asyncIterator in Object(answer)) await Readable.from(answer as AsyncIterable<unknown>).toArray()
    },
  })
  return [
    transcript('both', 'whisper-1'),
    transcript('both', 'gpt-4o-transcribe'),
    transcript('both', 'gpt-4o-mini-transcribe', { stream: true }),
    transcript('both', 'gpt-4o-transcribe-diarize', { response_format: 'diarized_json' }),
    // P4 says nothing; the length of the file is measured.
    transcript('reported', P4_RUN_MODEL),
  ]
}

/** Sessions and tasks, which leave more than one record. */
function lasting({ gateway }: UsageRun): readonly RunCall[] {
  const caller = new VideoCaller(gateway)
  const session = `request ${REALTIME} ok none`
  const response = `response ${REALTIME} ok both`
  return [
    { leaves: [session, response], run: () => talk(gateway, '#words=7') },
    { leaves: [session, response, `input_transcription ${REALTIME} ok reported`], run: () => speakTo(gateway) },
    {
      leaves: [`request ${caller.path} ok none`, `task ${caller.path} ok reported`],
      run: async () => {
        const id = await caller.created()
        const read = () => caller.read(id)
        await eventually(async () => (await read()).body.data.task_status === 'succeed', read)
      },
    },
  ]
}

const REALTIME_ROUTE = '/v1/realtime'
const P2_MODEL_FIELD = { model: P2_RUN_MODEL }
const STREAM = { stream: true }
const ASKING = { stream: true, stream_options: { include_usage: true } }

/** Reads until the text so far is enough, and leaves. */
export async function leaveOnce(url: string, raw: RawRequest, isEnough: (text: string) => boolean): Promise<void> {
  const response = await openRaw(url, raw)
  let text = ''
  // A reader that stops here disconnects.
  for await (const chunk of response) {
    text += (chunk as Buffer).toString('latin1')
    if (isEnough(text)) break
  }
}

/** More frames than so many have arrived. */
export const frames = (count: number) => (text: string) => text.split(/\r?\n\r?\n/).length > count
const anything = (text: string): boolean => text.length > 0

const speech = (body: string): RawRequest => ({ path: SPEECH_PATH, body })
const chat = (text: string, more: object = {}): RawRequest => ({ path: CHAT_PATH, body: chatText(text, more) })
const messages = (text: string, more: object = {}): RawRequest => ({ path: MESSAGES, body: messageText(text, more) })

/** Every kind of call whose caller leaves in the middle of the answer, with figures drawn. */
export function leftCalls({ gateway }: UsageRun, draw: (most: number) => number): readonly RunCall[] {
  const [words, held] = [draw(60), draw(20)]
  const text = `#chunks=50 #hold=${held}`
  const left = (raw: RawRequest, isEnough: (text: string) => boolean): RunCall => ({
    leaves: [`request ${raw.path} caller_left estimated`],
    run: () => leaveOnce(gateway.url, raw, isEnough),
  })
  return [
    left(chat(text, STREAM), frames(held)),
    left(chat(`日本 ${text}`, ASKING), frames(held)),
    left(messages(text, STREAM), frames(held)),
    left(speech(speechText('#bytes=4000000', { response_format: 'pcm' })), anything),
    left(speech(p2Text(`#slow ${'one '.repeat(words)}`, P2_MODEL_FIELD)), anything),
    left(speech(p3Text('#bytes=4000000 你', { response_format: 'pcm' })), anything),
    {
      leaves: [`request ${REALTIME_ROUTE} ok none`, `response ${REALTIME_ROUTE} caller_left estimated`],
      run: () => leaveAnswer(gateway, words),
    },
  ]
}

/** Every kind of call whose upstream fails, before its answer or in the middle of it. */
export function failedCalls({ gateway }: UsageRun, draw: (most: number) => number): readonly RunCall[] {
  const [words, chunks] = [draw(60), 8 + draw(20)]
  const said = 'one '.repeat(words)
  const failed = (figures: string, raw: RawRequest): RunCall => ({
    leaves: [`request ${raw.path} upstream_failed ${figures}`],
    run: () => sendRaw(gateway.url, raw),
  })
  return [
    failed('none', chat('#500')),
    failed('none', chat('#503', STREAM)),
    failed('none', messages('#529')),
    failed('none', speech(speechText('#500 Hello'))),
    failed('none', speech(p3Text('#500 你好'))),
    failed('estimated', chat(`#cut #chunks=${chunks}`, STREAM)),
    failed('estimated', chat(`#cleancut #chunks=${chunks}`, ASKING)),
    failed('estimated', chat(`#errorframe #chunks=${chunks}`, STREAM)),
    failed('estimated', messages(`#cut #chunks=${chunks}`, STREAM)),
    failed('estimated', messages(`#errorframe #chunks=${chunks}`, STREAM)),
    failed('estimated', speech(speechText(`#cut ${said}`))),
    failed('estimated', speech(p3Text(`#cut 你好 ${said}`))),
    // P2 charges for what it has spoken to its end.
    failed('none', speech(p2Text(`#cut ${'one '.repeat(20 + words)}`, P2_MODEL_FIELD))),
    {
      leaves: [
        `request ${REALTIME_ROUTE} upstream_failed none`,
        `response ${REALTIME_ROUTE} upstream_failed estimated`,
      ],
      run: () => loseAnswer(gateway, words),
    },
  ]
}

/** A file's fault cannot stand in its form, as that would be billed: one call after another, before all others. */
export function brokenTranscripts({ gateway, p1 }: UsageRun, draw: (most: number) => number): readonly RunCall[] {
  // Whole tokens at 1,000 a minute.
  const file = wavOfSeconds(3 * draw(9))
  const raw = upload(form({ model: 'gpt-4o-mini-transcribe', stream: 'true' }, file))
  const leaves = (how: string): Pick<RunCall, 'leaves'> => ({ leaves: [`request ${TRANSCRIPTIONS} ${how}`] })
  return [
    {
      ...leaves('caller_left estimated'),
      run: () => {
        p1.queueFault('stall')
        return leaveOnce(gateway.url, raw, frames(4))
      },
    },
    {
      ...leaves('upstream_failed estimated'),
      run: async () => {
        p1.queueFault('cut')
        expect((await sendRaw(gateway.url, raw)).text).toContain('transcript.text.delta')
      },
    },
    {
      ...leaves('upstream_failed none'),
      run: async () => {
        p1.queueFault('503')
        expect((await sendRaw(gateway.url, raw)).status).toBeGreaterThanOrEqual(500)
      },
    },
  ]
}
