import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, sample, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOf, wavOfSeconds } from '../support/audio-uploads.js'
import { expectRefused, type Refusal } from '../support/bad-requests.js'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw, type RawRequest } from '../support/raw-http.js'
import { spoolsLeft } from '../support/audio-uploads.js'
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
const bad = (code: string | null, param: string | null = null): Refusal => ({ status: 400, code, param })
const refused = (request: RawRequest, refusal: Refusal): Promise<void> => expectRefused(lab, request, refusal)

describe.each([TRANSCRIPTIONS, TRANSLATIONS])('a form sent to %s', (path) => {
  it('is refused without a file, with a file that is text, and with a file without a name', async () => {
    await refused(upload([model], path), bad('missing_required_parameter', 'file'))
    await refused(upload([model, fieldPart('file', 'words')], path), bad(null, 'file'))
    await refused(upload([model, filePart(recording, '')], path), bad(null, 'file'))
  })

  it.each([
    ['empty', Buffer.alloc(0), 'a.wav', 'empty_file'],
    ['text', Buffer.from('These are words, not sounds. '.repeat(50)), 'a.mp3', 'invalid_audio_format'],
    ['a page', Buffer.from('<!doctype html><title>x</title>'), 'a.wav', 'invalid_audio_format'],
    ['a picture', Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1'), 'a.png', 'invalid_audio_format'],
    ['ADTS', sample('tone.aac'), 'a.aac', 'invalid_audio_format'],
    ['an AVI', sample('video.avi'), 'a.wav', 'invalid_audio_format'],
    ['a film without sound', sample('video-only.mp4'), 'a.mp4', 'audio_undecodable'],
    ['a WebM without sound', sample('video-only.webm'), 'a.webm', 'audio_undecodable'],
    ['an Ogg without sound', sample('video-only.ogg'), 'a.ogg', 'audio_undecodable'],
    ['a WAV header alone', wavOf(44), 'a.wav', 'audio_undecodable'],
    ['the first bytes of a WAV', wavOf(1000).subarray(0, 30), 'a.wav', 'audio_undecodable'],
    ['a tag without sound', Buffer.from('ID3\x03\0\0\0\0\0\0', 'latin1'), 'a.mp3', 'audio_undecodable'],
    ['the head of a FLAC', sample('tone.flac').subarray(0, 42), 'a.flac', 'audio_undecodable'],
    ['random bytes behind a name', Buffer.from([0xde, 0xad, 0xbe, 0xef]), 'a.m4a', 'invalid_audio_format'],
  ])('is refused when its file is %s', async (_name, content, filename, code) => {
    await refused(upload([filePart(content, filename), model], path), bad(code, 'file'))
  })

  it('is refused with 400 when the file is over its limit, and accepted at the limit', async () => {
    const parts = (bytes: number) => [model, filePart(wavOf(bytes))]
    await refused(upload(parts(FILE_BYTES + 1), path), bad('file_too_large', 'file'))
    await refused(upload(parts(FILE_BYTES + 50_000), path), bad('file_too_large', 'file'))
    expect((await sendRaw(lab.gateway.url, upload(parts(FILE_BYTES), path))).status).toBe(200)
  })

  it.each([
    ['announced by its length', {}],
    ['that only shows itself while it arrives', { 'transfer-encoding': 'chunked' }],
  ])('is refused with 413 when its body is over the limit, %s', async (_name, headers) => {
    const fields = Array.from({ length: 10 }, (_, index) => fieldPart(`field${index}`, 'x'.repeat(60_000)))
    await refused(upload([...fields, model], path, headers), { status: 413, code: 'payload_too_large' })
  })

  it.each(['-0.1', '1.1', '1.0000001', '1e9'])('is refused with temperature %s out of range', async (value) => {
    const code = value.startsWith('-') ? 'decimal_below_min_value' : 'decimal_above_max_value'
    await refused(upload([model, filePart(recording), fieldPart('temperature', value)], path), bad(code, 'temperature'))
  })

  it.each(['', ' ', 'hot', 'NaN', 'Infinity', '0x1', '0,5', '1.2.3', '٠', 'true'])(
    'is refused with temperature %j, which is no decimal',
    async (value) => {
      const parts = [model, filePart(recording), fieldPart('temperature', value)]
      await refused(upload(parts, path), bad('invalid_type', 'temperature'))
    },
  )

  it.each(['mp3', 'JSON', 'verbose-json', '', 'diarized_json', '__proto__'])(
    'is refused with response_format %j',
    async (format) => {
      const parts = [model, filePart(recording), fieldPart('response_format', format)]
      await refused(upload(parts, path), bad('unsupported_value', 'response_format'))
    },
  )

  it.each([
    ['no-such-model', 'model_not_found'],
    ['gpt-4o', 'model_not_found'],
    ['tts-1', 'model_not_found'],
    ['<script>', 'model_not_found'],
  ])('is refused with the model %s', async (name, code) => {
    await refused(upload([filePart(recording), fieldPart('model', name)], path), bad(code, 'model'))
  })

  it('is refused with a model of white space', async () => {
    const request = upload([filePart(recording), fieldPart('model', ' ')], path)
    const answer = await sendRaw(lab.gateway.url, request)
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, { error: { param: 'model' } }])
    expect(lab.simulator.requests).toEqual([])
  })

  it('is refused when the key may not use the model', async () => {
    const request = upload([filePart(recording), model], path, { authorization: 'Bearer limited-gateway-key' })
    await refused(request, { status: 403, type: 'permission_error', code: 'model_not_allowed', param: 'model' })
  })

  it('is refused without a key before its body is read', async () => {
    const headers = { ...MULTIPART, authorization: undefined }
    const unauthorized = { status: 401, type: 'authentication_error', code: 'invalid_api_key' }
    await refused({ path, headers, body: 'not multipart' }, unauthorized)
    await refused({ path, headers, body: Buffer.alloc(BODY_BYTES * 4) }, unauthorized)
  })

  it.each([
    ['application/json'],
    ['application/x-www-form-urlencoded'],
    ['multipart/mixed; boundary=x'],
    ['audio/wav'],
    ['multipart/form-data-x; boundary=x'],
    [undefined],
  ])('is refused as %s', async (contentType) => {
    const request = { path, headers: { 'content-type': contentType }, body: '{"model":"whisper-1"}' }
    await refused(request, { status: 415, code: 'unsupported_media_type' })
  })

  it('is refused when it is compressed', async () => {
    const request = upload([filePart(recording), model], path, { 'content-encoding': 'gzip' })
    await refused(request, { status: 415, code: 'unsupported_media_type' })
  })
})

describe('a transcription', () => {
  it('is refused without a model', async () => {
    await refused(upload([filePart(recording)]), bad('missing_required_parameter', 'model'))
  })

  it.each(['xx-bad', 'english', 'zz', '', 'en-US', 'e', '日本', 'en\n'])(
    'is refused in the language %j',
    async (code) => {
      const parts = [model, filePart(recording), fieldPart('language', code)]
      await refused(upload(parts), bad('invalid_language_format', 'language'))
    },
  )

  it.each(['en', 'EN', 'eng', 'de', 'zho'])('is not refused for the language %s', async (code) => {
    await sendRaw(lab.gateway.url, upload([model, filePart(recording), fieldPart('language', code)]))
    expect(lab.simulator.requests).toHaveLength(1)
  })

  it.each(['0', '1', '0.5', '1.0', '.5', '1e-3'])('is not refused for the temperature %s', async (value) => {
    await sendRaw(lab.gateway.url, upload([model, filePart(recording), fieldPart('temperature', value)]))
    expect(lab.simulator.requests).toHaveLength(1)
  })

  it.each(['yes', '1', '', 'TRUE'])('is refused with stream %j', async (value) => {
    const parts = [model, filePart(recording), fieldPart('stream', value)]
    await refused(upload(parts), bad('invalid_type', 'stream'))
  })

  it.each(
    [
      'gpt-4o-transcribe',
      'gpt-4o-mini-transcribe',
      'gpt-4o-mini-transcribe-2025-12-15',
      'gpt-4o-transcribe-diarize',
    ].flatMap((name) => ['verbose_json', 'srt', 'vtt'].map((format) => [name, format] as const)),
  )('by %s as %s is refused as unsupported_value', async (name, format) => {
    const parts = form([
      ['model', name],
      ['response_format', format],
    ])
    await refused(upload(parts), bad('unsupported_value', 'response_format'))
  })

  it('as diarized_json is refused but for the model that can tell speakers apart', async () => {
    for (const name of ['whisper-1', 'gpt-4o-transcribe']) {
      const parts = form([
        ['model', name],
        ['response_format', 'diarized_json'],
      ])
      await refused(upload(parts), bad('unsupported_value', 'response_format'))
    }
  })
})

describe('a translation', () => {
  it.each(['gpt-4o-transcribe', 'gpt-4o-transcribe-diarize'])('by %s is refused', async (name) => {
    await refused(upload(form([['model', name]]), TRANSLATIONS), bad('model_not_found', 'model'))
  })
})

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

it('nothing of an upload is ever logged', () => {
  expect(lab.gateway.logText()).toContain('invalid_audio_format')
  expect(lab.gateway.logText()).not.toMatch(/These are words|xx-bad|test-gateway-key|limited-gateway-key/)
})
