import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { expectRefused } from '../support/bad-requests.js'
import { SPEECH_PATH, speechText } from '../support/chat-bodies.js'
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

const MISSING = 'missing_required_parameter'
const TYPE = 'invalid_type'

const CASES: readonly (readonly [fields: object, param: string, code: string])[] = [
  [{ model: undefined }, 'model', MISSING],
  [{ model: null }, 'model', MISSING],
  [{ model: [] }, 'model', TYPE],
  [{ model: '' }, 'model', 'empty_string'],
  [{ input: undefined }, 'input', MISSING],
  [{ input: null }, 'input', MISSING],
  [{ input: 7 }, 'input', TYPE],
  [{ input: '' }, 'input', 'empty_string'],
  [{ input: ' \t\r\n\u3000\u00a0' }, 'input', 'empty_string'],
  [{ input: 'a'.repeat(4097) }, 'input', 'string_above_max_length'],
  [{ input: '😀'.repeat(4097) }, 'input', 'string_above_max_length'],
  [{ voice: undefined }, 'voice', MISSING],
  [{ voice: null }, 'voice', MISSING],
  [{ voice: 7 }, 'voice', TYPE],
  [{ voice: '' }, 'voice', TYPE],
  [{ voice: {} }, 'voice', TYPE],
  [{ voice: { id: 7 } }, 'voice', TYPE],
  [{ voice: { id: '' } }, 'voice', TYPE],
  [{ instructions: 7 }, 'instructions', TYPE],
  [{ response_format: 'ogg' }, 'response_format', 'invalid_audio_format'],
  [{ response_format: 'MP3' }, 'response_format', 'invalid_audio_format'],
  [{ response_format: '' }, 'response_format', 'invalid_audio_format'],
  [{ response_format: 7 }, 'response_format', TYPE],
  [{ speed: 0.24 }, 'speed', 'decimal_below_min_value'],
  [{ speed: 4.01 }, 'speed', 'decimal_above_max_value'],
  [{ speed: '1' }, 'speed', TYPE],
  [{ stream_format: 'events' }, 'stream_format', 'invalid_value'],
  [{ stream_format: true }, 'stream_format', TYPE],
  [{ metadata: 'x' }, 'metadata', TYPE],
  [{ metadata: [] }, 'metadata', TYPE],
]

describe('a speech request is refused before the upstream hears of it, and the field at fault is named', () => {
  it.each(CASES)('%j → %s %s', async (fields, param, code) => {
    await expectRefused(lab, { path: SPEECH_PATH, body: speechText('Hello', fields) }, { status: 400, code, param })
  })
})

describe('a speech request is not refused', () => {
  it.each([
    ['for 4096 characters', { input: 'a '.repeat(2048) }],
    ['for 4096 characters of two UTF-16 units each', { input: '😀'.repeat(4096) }],
    ['for the lowest speed', { speed: 0.25 }],
    ['for the highest speed', { speed: 4.0 }],
    ['for a voice of the upstream beyond the six', { voice: 'sage' }],
    ['for a custom voice', { voice: { id: 'voice_123' } }],
  ])('%s', async (_name, fields) => {
    const body = speechText('Hello', { response_format: 'pcm', ...fields })
    const answer = await sendRaw(lab.gateway.url, { path: SPEECH_PATH, body })
    expect(answer.status).toBe(200)
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
  })
})
