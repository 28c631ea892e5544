import { describe, expect } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { startP4Simulator } from '@multi-model-gateway/sandbox/p4/p4.simulator.js'
import { form, TRANSCRIPTIONS, TRANSLATIONS, upload } from '../support/upload-server.js'
import { describeProvider } from './provider.contract.js'
import { type CallForm, OPENAI_AUDIO } from './provider-lab.js'

const KEY = 'canary4f1d7c0Qz83Lw'
const STANDARD = 'whisper-1'
const GENERATIVE = 'gpt-4o-transcribe'

/** An upload whose answer is one JSON body. */
const plain = (name: string, model: string, path: string, usage: object): CallForm => ({
  name,
  errors: OPENAI_AUDIO,
  request: () => upload(form({ model }), path),
  expectAnswer: ({ text }) => {
    expect(JSON.parse(text)).toMatchObject({ text: expect.stringMatching(/./) })
  },
  usage,
})

const SECONDS = { units: { seconds: expect.any(Number) } }
const TOKENS = { units: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) } }

const streamed: CallForm = {
  name: 'a stream',
  errors: OPENAI_AUDIO,
  request: () => upload(form({ model: GENERATIVE, stream: 'true' }), TRANSCRIPTIONS),
  expectAnswer: ({ headers, text }) => {
    expect(headers['content-type']).toMatch(/^text\/event-stream/)
    expect(text).toContain('"transcript.text.done"')
  },
  terminator: '[DONE]',
  usage: TOKENS,
}

describeProvider('transcription by P1', {
  provider: 'p1',
  credentials: KEY,
  start: () => startP1Simulator({ apiKey: KEY }),
  forms: [
    plain('the standard class', STANDARD, TRANSCRIPTIONS, SECONDS),
    plain('the generative class', GENERATIVE, TRANSCRIPTIONS, TOKENS),
    streamed,
    plain('a translation', STANDARD, TRANSLATIONS, SECONDS),
  ],
})

describe.each([
  // It says nothing of the length: the gateway has measured it.
  ['groq', { units: { audio_seconds: expect.any(Number) } }],
  ['openai', SECONDS],
] as const)('in the mode %s', (mode, used) => {
  describeProvider('transcription by P4', {
    provider: 'p4',
    prefix: mode === 'openai' ? '' : '/openai',
    credentials: KEY,
    start: () => startP4Simulator({ apiKey: KEY, mode }),
    forms: [
      plain('a transcription', STANDARD, TRANSCRIPTIONS, used),
      plain('a translation', STANDARD, TRANSLATIONS, used),
    ],
  })
})
