import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, spoolsLeft, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { expectRefused, type Refusal } from '../support/bad-requests.js'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw, type RawRequest } from '../support/raw-http.js'
import { fieldPart, filePart } from '../support/upload-server.js'

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
