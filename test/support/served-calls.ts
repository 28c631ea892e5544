import { Readable } from 'node:stream'
import { expect } from '@jest/globals'
import { toFile } from 'openai'
import { TRANSCRIPTIONS, wavOfSeconds } from './audio-uploads.js'
import { CHAT_PATH, SPEECH_PATH, speechText } from './chat-bodies.js'
import { eventually } from './eventually.js'
import { anthropic0, message, MESSAGES } from './m1-gateway.js'
import { openai6 } from './openai-clients.js'
import { p2Text } from './p2-gateway.js'
import { p3Text } from './p3-gateway.js'
import { sendRaw } from './raw-http.js'
import { speakTo, talk } from './realtime-turns.js'
import type { RunCall } from './run-call.js'
import { P2_RUN_MODEL, P4_RUN_MODEL, type UsageRun } from './usage-run.js'
import { VideoCaller } from './video-caller.js'

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
        await eventually(async () => (await caller.read(id)).body.data.task_status === 'succeed')
      },
    },
  ]
}
