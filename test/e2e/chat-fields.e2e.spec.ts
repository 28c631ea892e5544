import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { expectRefused } from '../support/bad-requests.js'
import { chat, CHAT_PATH } from '../support/chat-bodies.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

type Case = readonly [fields: object, param: string, code: string]

const MISSING = 'missing_required_parameter'
const TYPE = 'invalid_type'
const user = (content: unknown): object => ({ messages: [{ role: 'user', content }] })
const inputAudio = (audio: unknown): object =>
  user([
    { type: 'text', text: 'x' },
    { type: 'input_audio', input_audio: audio },
  ])
const spoken = (audio: unknown, more: object = {}): object => ({ modalities: ['text', 'audio'], audio, ...more })

const MODEL_AND_MESSAGES: readonly Case[] = [
  [{ model: undefined }, 'model', MISSING],
  [{ model: null }, 'model', MISSING],
  [{ model: 7 }, 'model', TYPE],
  [{ model: '' }, 'model', 'empty_string'],
  [{ model: ' \n' }, 'model', 'empty_string'],
  [{ messages: undefined }, 'messages', MISSING],
  [{ messages: null }, 'messages', MISSING],
  [{ messages: 'Hello' }, 'messages', TYPE],
  [{ messages: {} }, 'messages', TYPE],
  [{ messages: [] }, 'messages', 'empty_array'],
  [{ messages: ['Hello'] }, 'messages[0]', TYPE],
  [{ messages: [null] }, 'messages[0]', TYPE],
  [{ messages: [{ role: 'user', content: 'x' }, { content: 'x' }] }, 'messages[1].role', MISSING],
  [{ messages: [{ role: 1, content: 'x' }] }, 'messages[0].role', TYPE],
  [{ messages: [{ role: '', content: 'x' }] }, 'messages[0].role', 'empty_string'],
  [user(7), 'messages[0].content', TYPE],
  [user({ text: 'x' }), 'messages[0].content', TYPE],
  [user(['x']), 'messages[0].content[0]', TYPE],
  [user([{ text: 'x' }]), 'messages[0].content[0].type', MISSING],
]

const AUDIO: readonly Case[] = [
  [inputAudio(undefined), 'messages[0].content[1].input_audio', MISSING],
  [inputAudio({ format: 'wav' }), 'messages[0].content[1].input_audio.data', MISSING],
  [inputAudio({ data: 'UklGRg==' }), 'messages[0].content[1].input_audio.format', MISSING],
  [
    inputAudio({ data: 'UklGRg==', format: 'ogg' }),
    'messages[0].content[1].input_audio.format',
    'invalid_audio_format',
  ],
  [
    inputAudio({ data: 'data:audio/wav;base64,UklGRg==', format: 'wav' }),
    'messages[0].content[1].input_audio.data',
    'invalid_value',
  ],
  [{ modalities: 'audio' }, 'modalities', TYPE],
  [{ modalities: [1] }, 'modalities[0]', TYPE],
  [{ modalities: ['audio'] }, 'audio', MISSING],
  [spoken('wav'), 'audio', TYPE],
  [spoken({ format: 'wav' }), 'audio.voice', MISSING],
  [spoken({ voice: '', format: 'wav' }), 'audio.voice', TYPE],
  [spoken({ voice: 'alloy' }), 'audio.format', MISSING],
  [spoken({ voice: 'alloy', format: 'ogg' }), 'audio.format', 'invalid_audio_format'],
  [spoken({ voice: 'alloy', format: 'wav' }, { stream: true }), 'audio.format', 'unsupported_value'],
]

const OPTIONS: readonly Case[] = [
  [{ stream: 'true' }, 'stream', TYPE],
  [{ stream: 1 }, 'stream', TYPE],
  [{ stream: true, stream_options: true }, 'stream_options', TYPE],
  [{ stream: true, stream_options: { include_usage: 'yes' } }, 'stream_options.include_usage', TYPE],
  [{ max_tokens: '10' }, 'max_tokens', TYPE],
  [{ max_tokens: 1.5 }, 'max_tokens', TYPE],
  [{ max_tokens: 0 }, 'max_tokens', 'integer_below_min_value'],
  [{ max_tokens: -1 }, 'max_tokens', 'integer_below_min_value'],
  [{ temperature: '1' }, 'temperature', TYPE],
  [{ temperature: -0.1 }, 'temperature', 'decimal_below_min_value'],
  [{ temperature: 2.1 }, 'temperature', 'decimal_above_max_value'],
  [{ tools: {} }, 'tools', TYPE],
  [{ tools: ['get_weather'] }, 'tools[0]', TYPE],
  [{ tools: [{ function: { name: 'f' } }] }, 'tools[0].type', MISSING],
  [{ tools: [{ type: 'function' }] }, 'tools[0].function', MISSING],
  [{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', MISSING],
  [{ tools: [{ type: 'function', function: { name: 1 } }] }, 'tools[0].function.name', TYPE],
  [{ tools: [{ type: 'function', function: { name: 'f', description: 1 } }] }, 'tools[0].function.description', TYPE],
  [{ tools: [{ type: 'function', function: { name: 'f', parameters: [] } }] }, 'tools[0].function.parameters', TYPE],
]

describe('a chat request is refused before the upstream hears of it, and the field at fault is named', () => {
  it.each([...MODEL_AND_MESSAGES, ...AUDIO, ...OPTIONS])('%j → %s %s', async (fields, param, code) => {
    const body = JSON.stringify({ ...chat('Hello'), ...fields })
    await expectRefused(lab, { path: CHAT_PATH, body }, { status: 400, code, param })
  })
})

describe('a chat request is not refused', () => {
  it.each([
    [{ stream: null, stream_options: null, tools: null, max_tokens: null, temperature: null, modalities: null }],
    [{ temperature: 0 }],
    [{ temperature: 2, max_tokens: 1 }],
    [
      {
        messages: [
          { role: 'developer', content: 'x' },
          { role: 'user', content: [{ type: 'text', text: '' }] },
        ],
      },
    ],
    [{ messages: [{ role: 'user', content: '' }] }],
  ])('for %j', async (fields) => {
    const allowed = { ...chat('Hello'), ...fields }
    // The upstream has the last word on fields it wants absent rather than null.
    const body = JSON.stringify(allowed, (name, value: unknown) =>
      name === 'tools' && value === null ? undefined : value,
    )
    expect((await sendRaw(lab.gateway.url, { path: CHAT_PATH, body })).status).toBe(200)
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
  })
})
