import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { toFile } from 'openai'
import { form, sha1, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { lastRequest } from '../support/last-request.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, UPSTREAM_KEY, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { fieldPart, filePart, type RawPart } from '../support/upload-server.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const recording = wavOfSeconds(2)

/** The parts as they reached the upstream: name and value, the file's as its digest. */
const received = (): (readonly [string, string | undefined])[] =>
  (lab.simulator.lastRequest?.parts ?? []).map(({ name, value, sha1: digest }) => [name, value ?? digest])

const send = async (parts: readonly RawPart[], path = TRANSCRIPTIONS): Promise<void> => {
  const answer = await sendRaw(lab.gateway.url, upload(parts, path))
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 })
}

const EVERY_FIELD = [
  ['temperature', '0.20'],
  ['include[]', 'logprobs'],
  ['chunking_strategy[type]', 'server_vad'],
  ['language', 'en'],
  ['chunking_strategy[threshold]', '0.50'],
  ['model', 'gpt-4o-transcribe'],
  ['prompt', 'naïve 日本語 \r\n second line "quoted"; name=x'],
  ['response_format', 'json'],
  ['stream', 'false'],
  ['chunking_strategy[prefix_padding_ms]', '300'],
] as const

const DIARIZED = [
  ['model', 'gpt-4o-transcribe-diarize'],
  ['known_speaker_names[]', 'Zoe'],
  ['known_speaker_references[]', 'data:audio/wav;base64,AAAA'],
  ['known_speaker_names[]', 'Ann'],
  ['known_speaker_references[]', 'data:audio/wav;base64,BBBB'],
  ['response_format', 'diarized_json'],
  ['chunking_strategy', '{"type":"server_vad", "threshold":0.50}'],
] as const

const VERBOSE = [
  ['response_format', 'verbose_json'],
  ['timestamp_granularities[]', 'segment'],
  ['model', 'whisper-1'],
  ['timestamp_granularities[]', 'word'],
] as const

describe('the parts of a form', () => {
  describe.each([
    ['every field', EVERY_FIELD],
    ['repeated fields and an object as JSON', DIARIZED],
    ['repeated fields apart', VERBOSE],
  ] as const)('with %s', (_name, fields) => {
    it.each([0, 1, Math.floor(fields.length / 2), fields.length])(
      'reach the upstream in their order and spelling when the file is number %i',
      async (place) => {
        const parts = fields.map(([name, value]) => fieldPart(name, value))
        parts.splice(place, 0, filePart(recording))
        await send(parts)
        const expected: (readonly [string, string])[] = [...fields]
        expected.splice(place, 0, ['file', sha1(recording)])
        expect(received()).toEqual(expected)
        expect(lab.simulator.violations).toEqual([])
      },
    )
  })

  it('reach the upstream in any order a caller chooses', async () => {
    const all: RawPart[] = [filePart(recording), ...EVERY_FIELD.map(([name, value]) => fieldPart(name, value))]
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(all, { minLength: all.length }), async (parts) => {
        await send(parts)
        const order = parts.map(({ head }) => /name="([^"]+)"/.exec(head)?.[1])
        expect(received().map(([name]) => name)).toEqual(order)
      }),
      { numRuns: 20 },
    )
  })

  it('of a translation travel on as well', async () => {
    const fields = [['prompt', 'Names: Zoë'] as const, ['temperature', '1'] as const, ['model', 'whisper-1'] as const]
    await send(form(fields, recording), TRANSLATIONS)
    expect(received()).toEqual([['file', sha1(recording)], ...fields])
  })

  it('are joined by the default model of a translation at the end', async () => {
    await send(form([['temperature', '0']], recording), TRANSLATIONS)
    expect(received()).toEqual([
      ['file', sha1(recording)],
      ['temperature', '0'],
      ['model', 'whisper-1'],
    ])
  })

  it('carry the name the channel gives the model, where the caller named it', async () => {
    const mapped = await startP1Gateway({ channel: { modelMap: { 'whisper-1': 'whisper-mapped' } } })
    try {
      const parts = [fieldPart('language', 'en'), fieldPart('model', 'whisper-1'), filePart(recording)]
      await sendRaw(mapped.gateway.url, upload(parts))
      const seen = mapped.simulator.lastRequest?.parts?.map(({ name, value }) => [name, value])
      expect(seen).toEqual([
        ['language', 'en'],
        ['model', 'whisper-mapped'],
        ['file', undefined],
      ])
    } finally {
      await mapped.close()
    }
  })
})

describe('the request to the upstream', () => {
  it('has a length and no chunks, the key of the channel, and nothing of the caller', async () => {
    const headers = {
      'user-agent': 'caller-canary',
      'x-stainless-lang': 'js',
      'openai-organization': 'org-canary',
      cookie: 'canary=1',
    }
    await sendRaw(lab.gateway.url, upload(form([['model', 'whisper-1']], recording), TRANSCRIPTIONS, headers))
    const { headers: seen, receivedBytes } = lastRequest(lab.simulator)
    expect(seen['content-length']).toBe(String(receivedBytes))
    expect(seen).not.toHaveProperty('transfer-encoding')
    expect(seen).not.toHaveProperty('expect')
    expect(seen['authorization']).toBe(`Bearer ${UPSTREAM_KEY}`)
    expect(seen['content-type']).toMatch(/^multipart\/form-data; boundary=\S+$/)
    expect(JSON.stringify(seen)).not.toMatch(
      /canary=|caller-canary|org-canary|stainless|spec-boundary|test-gateway-key/,
    )
  })
})

describe.each(OPENAI_CLIENTS)('%s', (_name, makeClient) => {
  const transcribe = async (at: { url: string }, apiKey?: string): Promise<unknown> => {
    const client = makeClient(at, apiKey === undefined ? {} : { apiKey })
    return await client.audio.transcriptions.create({
      file: await toFile(recording, 'meeting.wav'),
      model: 'gpt-4o-transcribe',
      include: ['logprobs'],
      chunking_strategy: { type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300 },
      temperature: 0.2,
      language: 'en',
    })
  }

  it('has its form relayed part for part, in the order it chose', async () => {
    // The old client ends its body with an empty line, which the strict simulator refuses after recording the parts.
    await transcribe(lab.simulator, UPSTREAM_KEY).catch(() => undefined)
    const direct = received()
    await transcribe(lab.gateway)
    expect(received()).toEqual(direct)
    expect(direct).toHaveLength(8)
    expect(direct).toContainEqual(['file', sha1(recording)])
    expect(direct).toContainEqual(['chunking_strategy[prefix_padding_ms]', '300'])
    expect(lab.simulator.requests.at(-1)?.violations).toEqual([])
  })
})
