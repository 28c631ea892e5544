import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import {
  sample,
  spoolsLeft,
  TRANSCRIPTIONS,
  TRANSLATIONS,
  upload,
  wavOf,
  wavOfSeconds,
} from '../support/audio-uploads.js'
import { expectRefused, type Refusal } from '../support/bad-requests.js'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw, type RawRequest } from '../support/raw-http.js'
import { fieldPart, filePart, MULTIPART } from '../support/upload-server.js'

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

it('nothing of an upload is ever logged', () => {
  expect(lab.gateway.logText()).toContain('invalid_audio_format')
  expect(lab.gateway.logText()).not.toMatch(/These are words|xx-bad|test-gateway-key|limited-gateway-key/)
})
