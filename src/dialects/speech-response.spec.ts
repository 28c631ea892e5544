import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { cpuMs } from '../../test/support/eventually.js'
import { newCall } from '../../test/support/raw-upstream.js'
import type { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { Usage } from '../core/request-context.js'
import { readLines } from '../core/sse.js'
import { KEEP_ALIVE_MS } from '../upstream/sse-relay.js'
import { DoneUsage } from './openai-wire.js'
import { upstreamVoice } from './speech-formats.js'
import {
  AudioCounter,
  estimateSpeechUsage,
  SpeechEventUsageEstimator,
  SpeechEventSource,
  SpeechUsageEstimator,
  speechResponse,
  type SpokenAudio,
} from './speech-response.js'
import {
  readVerboseSegments,
  renderSrt,
  renderSubtitles,
  renderVtt,
  type SubtitleSegment,
  TranscriptUsageEstimator,
} from './transcription.js'

describe('speech event source', () => {
  const USAGE = { input_tokens: 3, output_tokens: 5, total_tokens: 8 }

  function started(): { source: ManualSource; sink: RecordingSink; events: SpeechEventSource } {
    const source = new ManualSource()
    const sink = new RecordingSink()
    const events = new SpeechEventSource(source, () => USAGE)
    events.start(sink)
    return { source, sink, events }
  }

  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    expect(jest.getTimerCount()).toBe(0)
    jest.useRealTimers()
  })

  describe('Speech events built from raw audio', () => {
    it('carry each piece as base64 of its own, then the usage, then the terminator, all framed with CRLF', () => {
      const { source, sink } = started()
      source.data(Buffer.from([1]), Buffer.from([2, 3, 4, 5]))
      source.end()
      expect(sink.chunks.map(String)).toEqual([
        'data: {"type":"speech.audio.delta","audio":"AQ=="}\r\n\r\n',
        'data: {"type":"speech.audio.delta","audio":"AgMEBQ=="}\r\n\r\n',
        'data: {"type":"speech.audio.done","usage":{"input_tokens":3,"output_tokens":5,"total_tokens":8,"estimated":true}}' +
          '\r\n\r\ndata: [DONE]\r\n\r\n',
      ])
      expect(sink.ending).toBe('end')
    })

    it('fail without a done event when the audio breaks off', () => {
      const { source, sink } = started()
      source.data('abc')
      source.fail(new GatewayError('upstream_failed', 'reset'))
      expect(sink.text).not.toContain('done')
      expect(sink.failure).toBe('upstream_failed')
    })

    it('fail when the upstream sent no audio at all, as no caller may be billed for silence', () => {
      const { source, sink } = started()
      source.end()
      expect(sink.ending).toMatchObject({ kind: 'upstream_failed', details: { attempt: { channelError: true } } })
      expect(sink.text).toBe('')
    })

    it('are kept alive by comments in silence, and no longer once they are cancelled', () => {
      const { source, sink, events } = started()
      source.data('a')
      jest.advanceTimersByTime(KEEP_ALIVE_MS)
      expect(sink.chunks.at(-1)?.toString()).toBe(': keep-alive\r\n\r\n')
      events.pause()
      events.resume()
      events.cancel()
      expect(source.asked).toEqual(['pause', 'resume', 'cancel'])
      jest.advanceTimersByTime(KEEP_ALIVE_MS)
      expect(sink.chunks).toHaveLength(2)
    })
  })

  describe('estimateSpeechUsage', () => {
    it('counts characters as code points', () => {
      expect(estimateSpeechUsage('🎉🎉🎉🎉')).toEqual(estimateSpeechUsage('abcd'))
      expect(estimateSpeechUsage('a'.repeat(900))).toEqual({
        input_tokens: 225,
        output_tokens: 1000,
        total_tokens: 1225,
        input_characters: 900,
      })
    })

    it('prefers what the provider said itself: its characters and its milliseconds', () => {
      expect(estimateSpeechUsage('abcd', { characters: 8, audioMs: 60_000 })).toEqual({
        input_tokens: 1,
        output_tokens: 1000,
        total_tokens: 1001,
        input_characters: 8,
      })
    })
  })
})

function soFar(format: 'pcm' | 'wav' | 'mp3', bytesOut: number, characters = 7): unknown {
  return new SpeechUsageEstimator(
    () => characters,
    format,
    () => bytesOut,
  ).estimate()
}

describe('What a speech has used so far', () => {
  it.each([
    ['pcm', 24_000, { input_characters: 7, spoken_seconds: 0.5 }],
    ['wav', 24_044, { input_characters: 7, spoken_seconds: 0.5 }],
    ['wav', 10, { input_characters: 7, spoken_seconds: 0 }],
    ['mp3', 24_000, { input_characters: 7 }],
  ] as const)('is its characters, and its seconds where %s tells them', (format, bytes, units) => {
    expect(soFar(format, bytes)).toEqual({ units, estimated: true })
  })

  it('is nothing before the first piece', () => {
    expect(soFar('pcm', 0, 0)).toBeUndefined()
  })
})

describe('What relayed speech events have used so far', () => {
  const delta = (audio: Buffer): string =>
    `data: {"type":"speech.audio.delta","audio":"${audio.toString('base64')}"}\r\n\r\n`

  function counted(...regions: string[]): AudioCounter {
    const counter = new AudioCounter()
    for (const region of regions) readLines(Buffer.from(region), Buffer.from('data: {"error"'), counter)
    return counter
  }

  it.each([1, 2, 3, 4, 5, 600])('counts %i bytes of audio behind their base64', (bytes) => {
    const piece = delta(Buffer.alloc(bytes, 0xff))
    expect(counted(piece + piece, piece).count).toBe(3 * bytes)
  })

  it('is told from the audio where its format tells, and from the text elsewhere', () => {
    const audio = counted(delta(Buffer.alloc(48_000 * 3)))
    expect(new SpeechEventUsageEstimator('12345678', 'pcm', audio).estimate()).toEqual({
      units: { input_tokens: 2, output_tokens: 50, total_tokens: 52, spoken_seconds: 3 },
      estimated: true,
    })
    expect(new SpeechEventUsageEstimator('x'.repeat(15), 'mp3', audio).estimate()).toEqual({
      units: { input_tokens: 4, output_tokens: 17, total_tokens: 21 },
      estimated: true,
    })
  })

  it('is the same beside what the last event says', () => {
    const audio = counted(delta(Buffer.alloc(48_000 * 3)))
    const units = { input_tokens: 2, output_tokens: 50, total_tokens: 52, spoken_seconds: 3 }
    expect(new SpeechEventUsageEstimator('12345678', 'pcm', audio).countedUnits()).toEqual(units)
    expect(new SpeechEventUsageEstimator('12345678', 'pcm', counted()).countedUnits()).toBeUndefined()
  })

  it('is nothing without audio, whatever else passes', () => {
    const others =
      ': "audio":"AAAA"\r\n\r\ndata: {"audio":"AAA\r\ndata: {"type":"speech.audio.done"}\r\n\r\ndata: [DONE]\r\n\r\n'
    expect(new SpeechEventUsageEstimator('x', 'pcm', counted(others)).estimate()).toBeUndefined()
  })
})

interface Speech {
  readonly source: ManualSource
  readonly answer: Promise<ProviderResponse>
}

function spoken(more: Partial<SpokenAudio>, streamFormat?: string): Speech {
  const source = new ManualSource()
  const usage = (): ReturnType<typeof estimateSpeechUsage> => estimateSpeechUsage('hello')
  const speech = { source, format: 'mp3', sentAs: 'mp3', usage, characters: () => 5, call: newCall(), ...more } as const
  return { source, answer: speechResponse(speech, streamFormat) }
}

function bytesOf(answer: ProviderResponse): RecordingSink {
  const sink = new RecordingSink()
  if (Buffer.isBuffer(answer.body)) throw new Error('expected a body on its way')
  answer.body.start(sink)
  return sink
}

describe('A spoken answer', () => {
  it('leaves with its first bytes and the type of the bytes that are really sent', async () => {
    const { source, answer } = spoken({ sentAs: 'flac', format: 'flac', headers: { 'x-subtitle-url': 'u' } })
    source.data('fLaC')
    const { status, headers } = await answer
    expect(status).toBe(200)
    expect(headers).toEqual({ 'content-type': 'audio/flac', 'x-subtitle-url': 'u' })
  })

  it('says which format stands in for the one that was asked for', async () => {
    const { source, answer } = spoken({ fallback: 'mp3' })
    source.data('x')
    expect((await answer).headers).toEqual({ 'content-type': 'audio/mpeg', 'x-gateway-audio-fallback': 'mp3' })
  })

  it('puts one header of a WAV stream before the samples, together with the first of them', async () => {
    const { source, answer } = spoken({ format: 'pcm', sentAs: 'wav' })
    source.data(Buffer.from([1, 0]))
    const sink = bytesOf(await answer)
    source.data(Buffer.from([2, 0]))
    source.end()
    const wav = Buffer.concat(sink.chunks)
    expect(wav).toHaveLength(48)
    expect(wav.toString('latin1', 0, 4) + wav.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ')
    expect(wav.readUInt32LE(24)).toBe(24_000)
    expect([wav.readUInt16LE(22), wav.readUInt16LE(34), wav.readUInt32LE(40)]).toEqual([1, 16, 0xffffffff])
    expect([...wav.subarray(44)]).toEqual([1, 0, 2, 0])
  })

  it('does not promise anything before the upstream has spoken: a failure rejects', async () => {
    const { source, answer } = spoken({ format: 'pcm', sentAs: 'wav' })
    source.fail(new GatewayError('rate_limited', 'busy'))
    await expect(answer).rejects.toMatchObject({ kind: 'rate_limited' })
  })

  it('refuses silence instead of billing for it', async () => {
    const { source, answer } = spoken({ format: 'pcm', sentAs: 'wav' })
    source.end()
    await expect(answer).rejects.toMatchObject({ kind: 'upstream_failed' })
  })

  it('never parts a sample between two events, however the upstream cut its bytes', async () => {
    const { source, answer } = spoken({ format: 'pcm', sentAs: 'pcm' }, 'sse')
    source.data(Buffer.from([1, 0, 2]))
    const sink = bytesOf(await answer)
    source.data(Buffer.from([0]), Buffer.from([3]), Buffer.from([0, 4, 0]))
    source.end()
    const pieces = [...sink.text.matchAll(/"audio":"([^"]*)"/g)].map(([, audio]) => Buffer.from(audio ?? '', 'base64'))
    expect(pieces.map(({ length }) => length)).toEqual([2, 2, 4])
    expect([...Buffer.concat(pieces)]).toEqual([1, 0, 2, 0, 3, 0, 4, 0])
  })

  it('is events when they were asked for, with the figures known at the end', async () => {
    const { source, answer } = spoken({ usage: () => estimateSpeechUsage('hello', { characters: 10 }) }, 'sse')
    source.data('x')
    const begun = await answer
    expect(begun.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(begun.onFailure).toBe('frame')
    const sink = bytesOf(begun)
    source.end()
    expect(sink.text).toContain('"input_characters":10')
    expect(sink.text.endsWith('data: [DONE]\r\n\r\n')).toBe(true)
  })
})

function read(...regions: string[]): { found: Usage[]; passed: string } {
  const found: Usage[] = []
  const usage = new DoneUsage('transcript.text.done', (one) => found.push(one))
  const passed = regions.map((region) => usage.filter(Buffer.from(region)).toString()).join('')
  return { found, passed }
}

const DONE =
  'data: {"type":"transcript.text.done","text":"a","usage":{"type":"tokens","total_tokens":28,' +
  '"input_token_details":{"audio_tokens":17}}}\r\n\r\n'

describe('DoneUsage', () => {
  it('reads the usage of the last event and lets every byte pass', () => {
    const delta = 'data: {"type":"transcript.text.delta","delta":"\\"transcript.text.done\\" {}"}\r\n\r\n'
    const { found, passed } = read(delta, delta + DONE + 'data: [DONE]\r\n\r\n')
    expect(found).toEqual([
      { units: { total_tokens: 28, input_token_details: { audio_tokens: 17 } }, estimated: false },
    ])
    expect(passed).toBe(delta + delta + DONE + 'data: [DONE]\r\n\r\n')
  })

  it.each(['data: {"type":"transcript.text.done","text":"a"}\n\n', 'data: {"type":"transcript.text.done",\n\n'])(
    'finds nothing in %j and lets it pass',
    (frame) => {
      expect(read(frame)).toEqual({ found: [], passed: frame })
    },
  )
})

const hello: SubtitleSegment = { start: 0, end: 2, text: ' Hello, world! This is a test.' }
const twoSegments: readonly SubtitleSegment[] = [
  { start: 0, end: 1.4, text: ' Hello there.' },
  { start: 1.4, end: 3.2, text: ' How are you?' },
]

/** The kind of the gateway's error that the work throws. */
function kindOf(work: () => unknown): string | undefined {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return error.kind
  }
  return undefined
}

describe('renderSrt', () => {
  it('writes one block as the upstream does, ending in two blank lines', () => {
    expect(renderSrt([hello])).toBe('1\n00:00:00,000 --> 00:00:02,000\nHello, world! This is a test.\n\n\n')
  })

  it('separates blocks by one blank line', () => {
    expect(renderSrt(twoSegments)).toBe(
      '1\n00:00:00,000 --> 00:00:01,400\nHello there.\n\n2\n00:00:01,400 --> 00:00:03,200\nHow are you?\n\n\n',
    )
  })
})

describe('the text of a cue', () => {
  it('stands in lines without blanks at their ends, none of them empty', () => {
    expect(renderSrt([{ start: 0, end: 2, text: ' a \r\n \t\n  b  c \r d\n' }])).toContain('\na\nb  c\nd\n')
  })

  it('is written at once, however many blanks it holds', () => {
    const startedAtMs = cpuMs()
    const srt = renderSrt([{ start: 0, end: 2, text: `a${' '.repeat(100_000)}b` }])
    expect(srt).toContain(`a${' '.repeat(100_000)}b`)
    expect(cpuMs() - startedAtMs).toBeLessThan(100)
  })
})

describe('renderVtt', () => {
  it('writes the header, dots in the times, no index, and ends in one blank line', () => {
    expect(renderVtt([hello])).toBe('WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nHello, world! This is a test.\n\n')
    expect(renderVtt(twoSegments)).toBe(
      'WEBVTT\n\n00:00:00.000 --> 00:00:01.400\nHello there.\n\n00:00:01.400 --> 00:00:03.200\nHow are you?\n\n',
    )
    expect(renderVtt([])).toBe('WEBVTT\n\n')
  })
})

describe('times and texts', () => {
  const timeLine = (start: number, end = start): string => renderVtt([{ start, end, text: 'x' }]).split('\n')[2] ?? ''

  it.each([
    [59.9996, '00:01:00.000'],
    [3599.9995, '01:00:00.000'],
    [0.0004, '00:00:00.000'],
    [0.0005, '00:00:00.001'],
    [1.7000000476837158, '00:00:01.700'],
    [359_999.999, '99:59:59.999'],
    [360_000, '100:00:00.000'],
    [-0.2, '00:00:00.000'],
  ])('rounds %d seconds to %s', (seconds, text) => {
    expect(timeLine(seconds)).toBe(`${text} --> ${text}`)
  })

  it('never ends a cue before its start', () => {
    expect(timeLine(2, 1)).toBe('00:00:02.000 --> 00:00:02.000')
  })

  it('lets no text break out of its cue', () => {
    const text = ' a\r\n\r\n\n2\n00:00:00,000 --> 00:00:01,000\n \nb '
    expect(renderSrt([{ start: 0, end: 1, text }])).toBe(
      '1\n00:00:00,000 --> 00:00:01,000\na\n2\n00:00:00,000 -> 00:00:01,000\nb\n\n\n',
    )
  })

  const parse = (text: string): number => {
    const [hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = text.split(/[:.,]/).map(Number)
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
  }
  const seconds = fc.double({ min: 0, max: 500_000, noNaN: true })

  it('reads back as what went in, within half a millisecond, in both forms', () => {
    fc.assert(
      fc.property(seconds, seconds, (start, length) => {
        const segment = { start, end: start + length, text: 'x' }
        for (const [line = ''] of [
          renderVtt([segment]).split('\n').slice(2),
          renderSrt([segment]).split('\n').slice(1),
        ]) {
          const [from = '', to = ''] = line.split(' --> ')
          expect(from).toMatch(/^\d{2,}:[0-5]\d:[0-5]\d[.,]\d{3}$/)
          expect(Math.abs(parse(from) - start)).toBeLessThanOrEqual(0.0005 + 1e-9)
          expect(Math.abs(parse(to) - segment.end)).toBeLessThanOrEqual(0.0005 + 1e-9)
        }
      }),
    )
  })

  it('never shows a later time as an earlier one', () => {
    fc.assert(
      fc.property(seconds, fc.double({ min: 0, max: 1, noNaN: true }), (start, step) => {
        const times = [start, start + step].map((at) => parse(timeLine(at).split(' ')[0] ?? ''))
        expect(times[1]).toBeGreaterThanOrEqual(times[0] ?? NaN)
      }),
    )
  })
})

describe('readVerboseSegments', () => {
  it('takes the three members it needs from an answer', () => {
    const segments = twoSegments.map((segment, id) => ({ id, seek: 0, ...segment, tokens: [1] }))
    expect(readVerboseSegments({ task: 'transcribe', duration: 3.2, segments })).toEqual(twoSegments)
    expect(readVerboseSegments({ segments: [] })).toEqual([])
  })

  it.each([
    [null],
    ['text'],
    [[]],
    [{}],
    [{ segments: null }],
    [{ segments: {} }],
    [{ segments: [null] }],
    [{ segments: [{ start: '0', end: 1, text: 'x' }] }],
    [{ segments: [{ start: 0, end: null, text: 'x' }] }],
    [{ segments: [{ start: 0, end: Infinity, text: 'x' }] }],
    [{ segments: [{ start: 0, end: 1 }] }],
  ])('tells that the upstream failed for %j', (json) => {
    expect(() => readVerboseSegments(json)).toThrow(GatewayError)
    expect(kindOf(() => readVerboseSegments(json))).toBe('upstream_failed')
  })
})

describe('renderSubtitles', () => {
  const answer = { task: 'transcribe', text: 'Hello there. How are you?', segments: twoSegments }

  it('makes the form that was asked for out of an answer of verbose_json', () => {
    expect(renderSubtitles('srt', answer)).toBe(renderSrt(twoSegments))
    expect(renderSubtitles('vtt', answer)).toBe(renderVtt(twoSegments))
  })

  it('makes empty subtitles of an answer without speech', () => {
    expect(renderSubtitles('srt', { segments: [] })).toBe('\n')
    expect(renderSubtitles('vtt', { segments: [] })).toBe('WEBVTT\n\n')
  })

  it('tells that the upstream failed when there are no segments', () => {
    expect(kindOf(() => renderSubtitles('srt', { text: 'Hello there.' }))).toBe('upstream_failed')
  })
})

/** Three seconds at 1,000 tokens a minute, and a token for each piece. */
const HEARD = {
  total_tokens: 54,
  input_tokens: 50,
  input_token_details: { text_tokens: 0, audio_tokens: 50 },
  output_tokens: 4,
}

describe('What a streamed transcript has used', () => {
  it('is, while its upstream has not said it, all of the audio and the pieces that came', () => {
    expect(new TranscriptUsageEstimator(3, { count: 4 }).estimate()).toEqual({ units: HEARD, estimated: true })
  })

  it('is counted beside what that has said, with the length of the file', () => {
    expect(new TranscriptUsageEstimator(3, { count: 4 }).countedUnits()).toEqual({ ...HEARD, audio_seconds: 3 })
  })

  it('is its pieces alone where the file does not tell its length', () => {
    const meter = new TranscriptUsageEstimator(undefined, { count: 4 })
    expect(meter.countedUnits()).toEqual({ output_tokens: 4 })
    expect(meter.estimate()).toEqual({ units: { output_tokens: 4 }, estimated: true })
  })
})

const STANDARD = { alloy: 'Provider_Alloy', echo: 'Provider_Echo' }

describe('The name of a voice at an upstream', () => {
  it("is the channel's, then the provider's", () => {
    const ofChannel = { alloy: 'Channel_Alloy', narrator: 'Channel_Narrator' }
    expect(upstreamVoice('alloy', STANDARD, ofChannel)).toBe('Channel_Alloy')
    expect(upstreamVoice('narrator', STANDARD, ofChannel)).toBe('Channel_Narrator')
    expect(upstreamVoice('echo', STANDARD, ofChannel)).toBe('Provider_Echo')
    expect(upstreamVoice('alloy', STANDARD)).toBe('Provider_Alloy')
  })

  it.each(['Calm_Woman', 'Alloy', 'constructor', '__proto__', 'toString'])('is %s where no table names it', (name) => {
    expect(upstreamVoice(name, STANDARD, {})).toBe(name)
  })

  it('is the id as it stands, even one that a table names', () => {
    expect(upstreamVoice({ id: 'alloy' }, STANDARD, STANDARD)).toBe('alloy')
  })
})
