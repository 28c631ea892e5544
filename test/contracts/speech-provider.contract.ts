import { afterEach, describe, expect, it } from '@jest/globals'
import { Stream } from 'openai/core/streaming'
import { AUDIO_FORMATS } from '../../src/dialects/speech-formats.js'
import { decode, type DecodedAudio } from '../support/audio-decoders.js'
import { shareLab } from '../support/lab-lifetime.js'
import type { RawAnswer } from '../support/gateway.js'
import { openai6 } from '../support/sdk-clients.js'
import {
  SPEECH_FORMATS,
  SPEECH_FORMS,
  speechBytes,
  speechEvents,
  type SpeechLab,
  type SpeechSetup,
  startLab,
  withSpeechLab,
} from './speech-lab.js'
import { describeRefusals, describeStreams } from './speech-stream.contract.js'

const SENTENCE = 'The kettle is on the stove, and the tea is not far away. '
/** More than some upstreams take at a time. */
const MANY = 20
/** The contract's own tolerance; upstreams pause between sentences as they like. */
const TOLERANCE = 0.25

const SAMPLE_BYTES = 2

const VOICES = ['alloy', 'echo', 'fable', 'onyx', 'nova', 'shimmer'] as const

/** What is spoken, and in which form it arrives. */
function describeAudio(setup: SpeechSetup, exposed: string[]): void {
  let lab: SpeechLab
  shareLab(async () => (lab = await startLab(setup, exposed)))
  afterEach(() => {
    expect(lab.upstream.violations()).toEqual([])
    lab.upstream.reset()
  })

  const speech = async (form: string, format: keyof typeof AUDIO_FORMATS, more: object = {}): Promise<RawAnswer> => {
    const answer = await lab.speak(SENTENCE, { response_format: format, stream_format: form, ...more })
    expect({ status: answer.status, complete: answer.complete }).toEqual({ status: 200, complete: true })
    return answer
  }

  describe.each(SPEECH_FORMS)('speech as %s', (form) => {
    describe.each(SPEECH_FORMATS)('in %s', (format) => {
      const sent = setup.sentAs[format]
      const decoded = async (more?: object): Promise<DecodedAudio> =>
        decode(AUDIO_FORMATS[sent], speechBytes(await speech(form, format, more), form))

      it('is the audio that its Content-Type names, and says so where that was not asked for', async () => {
        const answer = await speech(form, format)
        expect(answer.headers['x-gateway-audio-fallback']).toBe(sent === format ? undefined : sent)
        if (form === 'audio') expect(answer.headers['content-type']).toBe(AUDIO_FORMATS[sent])
        const audio = await decode(AUDIO_FORMATS[sent], speechBytes(answer, form))
        expect(audio).toMatchObject({ channels: 1, warnings: [] })
        if (sent === 'pcm' || sent === 'wav') expect(audio.sampleRateHz).toBe(24_000)
        expect(audio.peak).toBeGreaterThan(0.05)
      })

      it('lasts as long as the text, and less when spoken faster', async () => {
        const once = await decoded()
        const twice = await decoded({ input: SENTENCE.repeat(2) })
        const faster = await decoded({ speed: 2 })
        expect(once.seconds).toBeGreaterThan(1)
        expect(Math.abs(twice.seconds / once.seconds - 2)).toBeLessThan(2 * TOLERANCE)
        expect(faster.seconds / once.seconds).toBeLessThan(1 - TOLERANCE)
      })

      it('is one file for a text of many sentences', async () => {
        const { seconds, warnings } = await decoded({ input: SENTENCE.repeat(MANY) })
        const once = await decoded()
        expect(Math.abs(seconds / once.seconds - MANY)).toBeLessThan(MANY * TOLERANCE)
        expect(warnings).toEqual([])
      })
    })
  })

  it('lasts as long in one format as in the other, so that no rate is mistaken', async () => {
    const seconds: number[] = []
    for (const format of SPEECH_FORMATS) {
      const answer = await speech('audio', format, { input: SENTENCE.repeat(2) })
      seconds.push((await decode(AUDIO_FORMATS[setup.sentAs[format]], answer.body)).seconds)
    }
    expect(Math.max(...seconds) / Math.min(...seconds)).toBeLessThan(1.1)
  })

  describe('speech events', () => {
    it('are deltas, then one done with the usage, then the terminator, framed with CRLF', async () => {
      const { types, usage, error } = speechEvents(await speech('sse', 'mp3'))
      const deltas = types.slice(0, -2)
      expect(deltas.length).toBeGreaterThan(1)
      expect(new Set(deltas)).toEqual(new Set(['speech.audio.delta']))
      expect(types.slice(-2)).toEqual(['speech.audio.done', '[DONE]'])
      expect(usage).toMatchObject({
        input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
        total_tokens: Number(usage?.['input_tokens']) + Number(usage?.['output_tokens']),
      })
      expect(error).toBeUndefined()
    })
  })

  describe('speech events in pcm', () => {
    it('never part a sample, however the bytes of the upstream arrive', async () => {
      await withSpeechLab(setup, exposed, { isCut: true }, async ({ speak }) => {
        const { deltas } = speechEvents(await speak(SENTENCE, { response_format: 'pcm', stream_format: 'sse' }))
        expect(deltas.length).toBeGreaterThan(10)
        expect(deltas.filter(({ length }) => length % SAMPLE_BYTES !== 0)).toEqual([])
      })
    })
  })

  describe('the log line of a speech', () => {
    it.each(SPEECH_FORMS)('as %s says what it took', async (form) => {
      const answer = await speech(form, 'mp3')
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({
        status: 200,
        channel: 'first',
        attempts: 1,
        usage: { estimated: expect.any(Boolean) },
      })
      const { units } = line['usage'] as { units: Readonly<Record<string, number>> }
      expect((units['input_characters'] ?? 0) + (units['input_tokens'] ?? 0)).toBeGreaterThan(0)
    })
  })

  describe('the official client', () => {
    const params = { model: setup.model, input: SENTENCE, voice: 'alloy', response_format: 'opus' } as const

    it('receives speech as a file', async () => {
      const response = await openai6(lab.gateway).audio.speech.create(params)
      const bytes = Buffer.from(await response.arrayBuffer())
      const type = response.headers.get('content-type') ?? ''
      expect((await decode(type, bytes)).seconds).toBeGreaterThan(1)
    })

    it('receives speech as events', async () => {
      const response = await openai6(lab.gateway).audio.speech.create({ ...params, stream_format: 'sse' })
      const pieces: Buffer[] = []
      const types: string[] = []
      const events = Stream.fromSSEResponse<{ type: string; audio?: string }>(response, new AbortController())
      for await (const { type, audio = '' } of events) {
        types.push(type)
        pieces.push(Buffer.from(audio, 'base64'))
      }
      expect(types.at(-1)).toBe('speech.audio.done')
      expect((await decode(AUDIO_FORMATS[setup.sentAs.opus], Buffer.concat(pieces))).seconds).toBeGreaterThan(1)
    })
  })

  describe('the voice', () => {
    it.each(VOICES)('%s speaks', async (voice) => {
      const audio = await decode('audio/pcm', (await speech('audio', 'pcm', { voice })).body)
      expect(audio.peak).toBeGreaterThan(0.05)
    })
  })

  describe('metadata that the provider knows', () => {
    it('is accepted', async () => {
      expect((await speech('audio', 'pcm', { metadata: setup.metadata.accepted })).body.length).toBeGreaterThan(0)
    })
  })
}

/**
 * The contract of speech for every provider, tested through a whole gateway
 * and over real sockets on both sides; `setup` says only what the specification lets differ.
 */
export function describeSpeechProvider(name: string, setup: SpeechSetup): void {
  describe(`speech by ${name}`, () => {
    const exposed: string[] = []
    describe('when all goes well', () => {
      describeAudio(setup, exposed)
    })
    describe('when it is refused', () => {
      describeRefusals(setup, exposed)
    })
    describe('between its first byte and its last', () => {
      describeStreams(setup, exposed)
    })

    // The last one: it searches what the others have heard, and what their gateways had logged when they were closed.
    it('shows the credentials of the channel in no answer, no header and no line of the log', () => {
      const told = exposed.join('\n')
      for (const mark of ['"channel":"first"', '"attempts":2', '"kind":"upstream_failed"', '"status":499'])
        expect(told).toContain(mark)
      for (const secret of setup.credentials.split('|')) expect(told).not.toContain(secret)
    })
  })
}
