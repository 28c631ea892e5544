import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { toFile } from 'openai'
import { form, sample, sha1, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
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
    const { headers: seen, receivedBytes = 0 } = lab.simulator.lastRequest ?? { headers: {} }
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

describe('the file', () => {
  it.each([
    ['tone.mp3', 'mp3', 'audio/mpeg'],
    ['tone.mp2', 'mpga', 'audio/mpeg'],
    ['tone.wav', 'wav', 'audio/wav'],
    ['tone.flac', 'flac', 'audio/flac'],
    ['tone-opus.ogg', 'ogg', 'audio/ogg'],
    ['tone-vorbis.ogg', 'ogg', 'audio/ogg'],
    ['tone.m4a', 'm4a', 'audio/mp4'],
    ['tone.mp4', 'mp4', 'audio/mp4'],
    ['clip.mp4', 'mp4', 'video/mp4'],
    ['tone.webm', 'webm', 'audio/webm'],
    ['tone.mpeg', 'mpeg', 'audio/mpeg'],
  ])('%s arrives whole, with a generated name that ends in .%s', async (name, extension, contentType) => {
    const bytes = sample(name)
    await sendRaw(lab.gateway.url, upload([filePart(bytes, name), fieldPart('model', 'whisper-1')]))
    expect(lab.simulator.lastRequest?.parts?.[0]).toMatchObject({
      name: 'file',
      filename: `audio.${extension}`,
      contentType,
      size: bytes.length,
      sha1: sha1(bytes),
    })
  })

  it.each([
    ['../../etc/passwd.wav', 'a path'],
    ['C:\\\\Users\\\\x\\\\secret.wav', 'a path of Windows'],
    ['a%0D%0AX-Injected: 1.wav', 'escaped line ends'],
    ['speech.mp3', 'the wrong extension'],
    ['speech', 'no extension'],
    ['Ünï 日本.wav', 'other scripts'],
  ])('called %s (%s) gets a name that shows nothing of it', async (filename) => {
    await send([filePart(recording, filename), fieldPart('model', 'whisper-1')])
    const [part] = lab.simulator.lastRequest?.parts ?? []
    expect(part?.rawDisposition).toMatch(/^form-data; name="file"; filename="audio\.wav"$/)
    expect(part?.sha1).toBe(sha1(recording))
  })

  it.each([
    'Content-Disposition: form-data; name=file; filename=a.wav',
    "Content-Disposition: form-data; name=file; filename=Assets\\a.wav; filename*=utf-8''Assets%5Ca.wav",
    'content-disposition: form-data; filename="a.wav"; name="file"\r\ncontent-type: application/octet-stream',
    'Content-Disposition: form-data; name="file"; filename*=UTF-8\'\'a%20b.wav',
  ])('is understood when its part begins with %j', async (head) => {
    await send([
      { head, content: recording },
      { head: 'Content-Disposition: form-data; name=model', content: 'whisper-1' },
      {
        head: 'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=language',
        content: 'en',
      },
    ])
    expect(received()).toEqual([
      ['file', sha1(recording)],
      ['model', 'whisper-1'],
      ['language', 'en'],
    ])
  })

  it('may be the smallest that upstreams read, one above the memory of the spool, and one in between', async () => {
    for (const bytes of [sample('tone.wav'), wavOfSeconds(30), wavOfSeconds(33), wavOfSeconds(200)]) {
      await send(form([['model', 'whisper-1']], bytes))
      expect(received()[0]).toEqual(['file', sha1(bytes)])
    }
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
