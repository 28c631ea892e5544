import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft, TRANSCRIPTIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw, type RawRequest } from '../support/raw-http.js'
import { BOUNDARY, fieldPart, filePart, MULTIPART, multipartBytes } from '../support/upload-server.js'

const FILE_BYTES = 300_000
const BODY_BYTES = 400_000
const keys = [
  { id: 'test', key: TEST_KEY },
  { id: 'limited', key: 'limited-gateway-key', models: ['tts-*'] },
]

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway({ keys, sections: { limits: { audioFileBytes: FILE_BYTES, audioBodyBytes: BODY_BYTES } } })
})
afterEach(async () => {
  lab.simulator.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

const model = fieldPart('model', 'whisper-1')
const recording = wavOfSeconds(1)

const good = multipartBytes([model, filePart(recording)])
const raw = (body: string | Buffer, headers: RawRequest['headers'] = {}): RawRequest => ({
  path: TRANSCRIPTIONS,
  headers: { ...MULTIPART, ...headers },
  body,
})
const replaced = (from: string, to: string): Buffer => Buffer.from(good.toString('latin1').replace(from, to), 'latin1')

describe('a multipart body', () => {
  it.each<[string, RawRequest]>([
    ['is empty', raw('')],
    ['is not multipart at all', raw('{"model":"whisper-1"}')],
    ['uses another boundary than it says', raw(good, { 'content-type': 'multipart/form-data; boundary=other' })],
    ['names no boundary', raw(good, { 'content-type': 'multipart/form-data' })],
    ['names an empty boundary', raw(good, { 'content-type': 'multipart/form-data; boundary=' })],
    [
      'names a boundary that is too long',
      raw(good, { 'content-type': `multipart/form-data; boundary=${'b'.repeat(71)}` }),
    ],
    ['ends without its closing boundary', raw(good.subarray(0, good.length - BOUNDARY.length - 8))],
    ['ends in the middle of the file', raw(good.subarray(0, good.length - 5000))],
    ['ends in the middle of its closing boundary', raw(good.subarray(0, good.length - 6))],
    ['ends in the headers of a part', raw(good.subarray(0, BOUNDARY.length + 30))],
    ['holds a closing boundary alone', raw(`--${BOUNDARY}--\r\n`)],
    ['has a part without headers', raw(replaced('Content-Disposition: form-data; name="model"\r\n', ''))],
    ['has a part without a name', raw(replaced('; name="model"', ''))],
    ['has a part that is no form data', raw(replaced('form-data; name="model"', 'attachment; name="model"'))],
    [
      'has a part with too many headers',
      raw(replaced('Content-Type: audio/wav', 'X-A: 1\r\n'.repeat(3000) + 'X-B: 2')),
    ],
    ['has line ends of one character', raw(good.toString('latin1').replaceAll('\r\n', '\n'))],
  ])('is refused when it %s', async (_name, request) => {
    const answer = await sendRaw(lab.gateway.url, request)
    expect(answer.status).toBe(400)
    expect(answer.complete).toBe(true)
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { type: 'invalid_request_error', message: expect.stringMatching(/.{15}/) },
    })
    expect(answer.headers['x-should-retry']).toBe('false')
    expect(lab.simulator.requests).toEqual([])
  })

  it.each([
    ['a second file', [filePart(recording), model, filePart(recording)], 'file'],
    ['a file under another name', [filePart(recording, 'a.wav', 'audio'), model], 'audio'],
    ['two models', [filePart(recording), model, fieldPart('model', 'gpt-4o-transcribe')], 'model'],
    [
      'two languages',
      [filePart(recording), model, fieldPart('language', 'en'), fieldPart('language', 'de')],
      'language',
    ],
    ['a list of models', [filePart(recording), model, fieldPart('model[]', 'x')], 'model[]'],
    ['a key that reaches a prototype', [filePart(recording), model, fieldPart('__proto__', 'x')], '__proto__'],
    ['such a key in brackets', [filePart(recording), model, fieldPart('a[constructor]', 'x')], 'a[constructor]'],
    ['a field of more than 64 KiB', [model, fieldPart('prompt', 'x'.repeat(65_537)), filePart(recording)], 'prompt'],
  ])('is refused with %s', async (_name, parts, param) => {
    const answer = await sendRaw(lab.gateway.url, upload(parts))
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text)).toMatchObject({ error: { type: 'invalid_request_error', param } })
    expect(lab.simulator.requests).toEqual([])
  })

  it('is refused with more than 64 fields', async () => {
    const fields = Array.from({ length: 65 }, (_, index) => fieldPart(`field${index}`, 'x'))
    const answer = await sendRaw(lab.gateway.url, upload([filePart(recording), ...fields]))
    expect(answer.status).toBe(400)
    expect(lab.simulator.requests).toEqual([])
  })

  it('may have a preamble, an epilogue and a boundary in quotes', async () => {
    const body = Buffer.concat([Buffer.from('preamble\r\n'), good, Buffer.from('epilogue')])
    const headers = { 'content-type': `multipart/form-data; charset=utf-8; boundary="${BOUNDARY}"` }
    expect((await sendRaw(lab.gateway.url, raw(body, headers))).status).toBe(200)
  })
})
