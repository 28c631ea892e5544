import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { cpuMs } from '../../test/support/cpu-time.js'
import { GatewayError } from '../core/gateway-error.js'
import { readVerboseSegments, renderSrt, renderSubtitles, renderVtt, type SubtitleSegment } from './subtitles.js'

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

  it('makes empty subtitles of an answer in which nobody speaks', () => {
    expect(renderSubtitles('srt', { segments: [] })).toBe('\n')
    expect(renderSubtitles('vtt', { segments: [] })).toBe('WEBVTT\n\n')
  })

  it('tells that the upstream failed when there are no segments', () => {
    expect(kindOf(() => renderSubtitles('srt', { text: 'Hello there.' }))).toBe('upstream_failed')
  })
})
