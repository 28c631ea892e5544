import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { newCall } from '../../test/support/raw-upstream.js'
import { type ByteSink, type ByteSource, ProviderResponse } from './byte-stream.js'
import type { RequestLog, Usage, UsageEstimator } from './request-context.js'
import { readLines } from './sse.js'
import { DeltaCounter } from './token-counter.js'
import { countedUnits } from './usage-record.js'
import { RelayedUsage, reportedUsage, settleUsage, withUsageFromEnds } from './usage.js'

const REPORTED: Usage = { units: { completion_tokens: 30 }, estimated: false }
const SO_FAR: Usage = { units: { prompt_tokens: 9, completion_tokens: 3 }, estimated: true }
const COUNTED = { completion_tokens: 3 }

/** Says how often each of its figures was asked for. */
class Meter implements UsageEstimator {
  readonly asked: string[] = []

  estimate(): Usage {
    this.asked.push('so far')
    return SO_FAR
  }

  countedUnits(): Usage['units'] {
    this.asked.push('counted')
    return COUNTED
  }
}

function settled(known: Partial<RequestLog>, isWhole = true): RequestLog {
  const { log } = newCall()
  Object.assign(log, known)
  settleUsage(log, isWhole)
  return log
}

describe('When a call is over', () => {
  it('what was counted stands beside what its upstream has said, and the request is not looked at', () => {
    const meter = new Meter()
    expect(settled({ usage: REPORTED, usageReader: new RelayedUsage(meter) })).toMatchObject({
      usage: REPORTED,
      estimate: COUNTED,
    })
    expect(meter.asked).toEqual(['counted'])
  })

  it('everything that can be known stands in for what was not said, and nothing beside it', () => {
    const meter = new Meter()
    const log = settled({ usageReader: new RelayedUsage(meter) })
    expect([log.usage, log.estimate, meter.asked]).toEqual([SO_FAR, undefined, ['so far']])
  })

  it('what its upstream said before the answer was complete is true of a whole one only', () => {
    const early = (completion: number): Usage => {
      const units = { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion }
      return { units: { ...units, prompt_tokens_details: { cached_tokens: 3 } }, estimated: false }
    }
    const counted: Usage = { units: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }, estimated: true }
    const readerOf = (completion: number): RelayedUsage => {
      const usage = new RelayedUsage({ estimate: () => counted })
      usage.report(early(completion), false)
      return usage
    }
    expect(settled({ usageReader: readerOf(0) }).usage).toEqual(early(0))
    expect(settled({ usageReader: readerOf(0) }, false).usage).toEqual({ ...early(5), estimated: true })
    expect(settled({ usageReader: readerOf(7) }, false).usage).toEqual({ ...early(7), estimated: true })
    const last = readerOf(0)
    last.report(REPORTED, true)
    expect(settled({ usageReader: last }, false).usage).toBe(REPORTED)
  })

  it('what a provider has counted by itself stays, and a provider that counts nothing is not asked', () => {
    const own = { input_characters: 5 }
    expect(settled({ usage: REPORTED, usageReader: new RelayedUsage(new Meter()), estimate: own }).estimate).toBe(own)
    expect(
      settled({ usage: REPORTED, usageReader: { reportedUsage: undefined, estimate: () => SO_FAR } }).estimate,
    ).toBeUndefined()
    expect(settled({ usage: REPORTED }).estimate).toBeUndefined()
  })

  it('what a reader has found is what was used', () => {
    const usage = new RelayedUsage(new Meter())
    usage.reportedUsage = REPORTED
    expect(settled({ usageReader: usage })).toMatchObject({ usage: REPORTED, estimate: COUNTED })
  })
})

/** A body that arrives in the given pieces as soon as it is started. */
const arriving = (pieces: readonly Buffer[]): ByteSource => ({
  start: (sink) => {
    for (const piece of pieces) sink.data(piece)
    sink.end()
  },
  pause: () => undefined,
  resume: () => undefined,
  cancel: () => undefined,
})

function relay(text: string, pieceBytes: number): { passed: string; usages: Usage[] } {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let start = 0; start < bytes.length; start += pieceBytes) pieces.push(bytes.subarray(start, start + pieceBytes))
  const usage = new RelayedUsage()
  const passed: Buffer[] = []
  const answer = withUsageFromEnds(new ProviderResponse(200, {}, arriving(pieces)), usage)
  const sink: ByteSink = { data: (chunk) => passed.push(chunk), end: () => undefined, fail: () => undefined }
  ;(answer.body as ByteSource).start(sink)
  return {
    passed: Buffer.concat(passed).toString(),
    usages: usage.reportedUsage === undefined ? [] : [usage.reportedUsage],
  }
}

const USAGE = '"usage" : {"prompt_tokens": 3, "details": {"cached_tokens": 1}}'
const FILLER = 'é'.repeat(10_000)

describe('the usage at an end of a large answer', () => {
  it.each(
    [1, 7, 1000, 65_536].flatMap((pieceBytes) => [
      [pieceBytes, 'behind', `{"choices": "${FILLER}", ${USAGE}, "service_tier": "default"}\n`] as const,
      [pieceBytes, 'before', `{"model": "m", ${USAGE}, "data": "${FILLER}", "note": {"usage": 1}}\n`] as const,
    ]),
  )('is found in pieces of %i bytes %s what was made, and every byte passes', (pieceBytes, _where, text) => {
    const { passed, usages } = relay(text, pieceBytes)
    expect(passed).toBe(text)
    expect(usages).toEqual([{ units: { prompt_tokens: 3, details: { cached_tokens: 1 } }, estimated: false }])
  })

  it.each([
    ['it is missing', `{"choices": "${FILLER}"}`],
    ['it is null', `{"choices": "${FILLER}", "usage": null}`],
    ['a model only speaks of it', `{"choices": "${FILLER} \\"usage\\": {\\"prompt_tokens\\": 3}"}`],
    ['it is broken off', `{"choices": "${FILLER}", "usage": {"prompt_tokens": 3`],
    ['it stands far from both ends', `{"id": "${FILLER}", ${USAGE}, "choices": "${FILLER}"}`],
    ['a part of the beginning has it', `{"note": {${USAGE}}, "choices": "${FILLER}"}`],
    ['it is broken off at the beginning', `{"usage": {"prompt_tokens": 3, "note": "${FILLER}"}}`],
  ])('is not invented when %s', (_name, text) => {
    expect(relay(text, 1000)).toEqual({ passed: text, usages: [] })
  })
})

describe('reportedUsage', () => {
  it('keeps the numbers of an upstream as it nests them, explicit zeros too, and nothing else', () => {
    const usage = {
      prompt_tokens: 11,
      total_tokens: 0,
      details: { cached_tokens: 0, audio: 2.5 },
      type: 'tokens',
      x: null,
    }
    expect(reportedUsage(usage)).toEqual({
      units: { prompt_tokens: 11, total_tokens: 0, details: { cached_tokens: 0, audio: 2.5 } },
      estimated: false,
    })
  })

  it.each([undefined, null, 'tokens', 3, {}, { type: 'tokens' }])('is undefined for %j', (usage) => {
    expect(reportedUsage(usage)).toBeUndefined()
  })
})

describe('What was used, whatever the upstream calls it', () => {
  it.each([
    [
      'chat',
      {
        prompt_tokens: 28,
        completion_tokens: 125,
        total_tokens: 153,
        prompt_tokens_details: { cached_tokens: 4, audio_tokens: 17, text_tokens: 11, image_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 7, audio_tokens: 93, accepted_prediction_tokens: 0 },
      },
      {
        promptTokens: 28,
        cachedTokens: 4,
        audioInputTokens: 17,
        completionTokens: 125,
        audioOutputTokens: 93,
        reasoningTokens: 7,
      },
    ],
    [
      'chat that wrote to a cache',
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cache_write_tokens: 5 } },
      { promptTokens: 9, completionTokens: 1, cacheWriteTokens: 5 },
    ],
    [
      'messages, whose input does not hold what is cached',
      {
        input_tokens: 8,
        cache_creation_input_tokens: 30,
        cache_read_input_tokens: 200,
        cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
        output_tokens: 12,
        output_tokens_details: { thinking_tokens: 5 },
      },
      {
        promptTokens: 238,
        cachedTokens: 200,
        cacheWriteTokens: 30,
        cacheWriteHourTokens: 10,
        completionTokens: 12,
        reasoningTokens: 5,
      },
    ],
    [
      'responses',
      {
        input_tokens: 50,
        input_tokens_details: { cached_tokens: 20 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 3 },
      },
      { promptTokens: 50, cachedTokens: 20, completionTokens: 9, reasoningTokens: 3 },
    ],
    [
      'a realtime response',
      {
        total_tokens: 253,
        input_tokens: 132,
        output_tokens: 121,
        input_token_details: {
          cached_tokens: 74,
          text_tokens: 119,
          audio_tokens: 13,
          cached_tokens_details: { text_tokens: 64, audio_tokens: 10 },
        },
        output_token_details: { text_tokens: 30, audio_tokens: 91 },
      },
      {
        promptTokens: 132,
        cachedTokens: 74,
        cachedAudioTokens: 10,
        audioInputTokens: 13,
        completionTokens: 121,
        audioOutputTokens: 91,
      },
    ],
    [
      'a transcription billed by token',
      {
        total_tokens: 28,
        input_tokens: 17,
        input_token_details: { text_tokens: 0, audio_tokens: 17 },
        output_tokens: 11,
      },
      { promptTokens: 17, audioInputTokens: 17, completionTokens: 11 },
    ],
    [
      'the sums of a realtime session, with what was heard by another model',
      { input_tokens: 5, output_tokens: 7, input_transcription: { input_tokens: 3, output_tokens: 1, seconds: 2 } },
      { promptTokens: 8, completionTokens: 8, audioSeconds: 2 },
    ],
    ['a transcription billed by time', { seconds: 2 }, { audioSeconds: 2 }],
    ['a transcription measured by the gateway', { audio_seconds: 1.7 }, { audioSeconds: 1.7 }],
    ['speech billed by token', { input_tokens: 10, output_tokens: 93 }, { promptTokens: 10, completionTokens: 93 }],
    ['speech billed by character', { input_characters: 41 }, { characters: 41 }],
    ['speech by the name of one provider', { usage_characters: 41 }, { characters: 41 }],
    [
      'speech whose tokens are estimated from its characters',
      { input_tokens: 11, output_tokens: 46, total_tokens: 57, input_characters: 41 },
      { characters: 41 },
    ],
    ['a document', { documents: 1, pages: 12 }, { documents: 1, pages: 12 }],
    ['a video', { videos: 1 }, { videos: 1 }],
    ['images', { images: 4 }, { images: 4 }],
    ['zeros, which are figures', { prompt_tokens: 0, completion_tokens: 0 }, { promptTokens: 0, completionTokens: 0 }],
    ['what is not known', { credits: 3, total_tokens: 5 }, {}],
    ['figures that are no counts', { prompt_tokens: -1, completion_tokens: Infinity, seconds: Number.NaN }, {}],
    ['groups where figures are due and the other way round', { prompt_tokens: { a: 1 }, input_token_details: 3 }, {}],
    ['nothing', {}, {}],
  ])('%s', (_what, units, expected) => {
    expect(countedUnits(units)).toStrictEqual(expected)
  })
})

const ERROR_MARK = Buffer.from('data: { "error"')

function counterOf(...regions: string[]): DeltaCounter {
  const counter = new DeltaCounter()
  for (const region of regions) readLines(Buffer.from(region), ERROR_MARK, counter)
  return counter
}

const counted = (...regions: string[]): number => counterOf(...regions).pieces

const frame = (json: string): string => `data: ${json}\n\n`
const chunk = (delta: string, index = 0): string =>
  frame(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":${index},"delta":${delta},"logprobs":null}]}`)

describe('A piece of an answer in an event stream', () => {
  it.each([
    ['text', '{"content":"Hello"}'],
    ['text that looks like the end of a frame', '{"content":"\\"delta\\":{}"}'],
    ['text of one blank', '{"content":" "}'],
    ['text beside a role', '{"role":"assistant","content":"Hello"}'],
    ['text with blanks between', '{ "content" : "Hello" }'],
    ['thoughts beside no text', '{"content":null,"reasoning_content":"Hm"}'],
    ['thoughts beside an empty text', '{"content":"","reasoning":"Hm"}'],
    ['a refusal', '{"refusal":"No"}'],
    ['a part of a tool call', '{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}'],
    ['a part of spoken audio', '{"audio":{"data":"AAAA"}}'],
    ['the text of messages', '{"type":"text_delta","text":"Hi"}'],
    ['the thinking of messages', '{"type":"thinking_delta","thinking":"Hm"}'],
    ['the input of a tool of messages', '{"type":"input_json_delta","partial_json":"{\\"a"}'],
    ['a piece of a transcript', '" word"'],
  ])('is counted: %s', (_name, delta) => {
    expect(counted(chunk(delta))).toBe(1)
    // Behind one whose place was learned.
    expect(counted(chunk('{}') + chunk(delta), chunk(delta))).toBe(2)
  })

  it.each([
    ['the role', '{"role":"assistant","content":"","refusal":null}'],
    ['an empty delta', '{}'],
    ['an empty delta with a blank', '{ }'],
    ['no delta', 'null'],
    ['an empty text', '""'],
    ['a null', '{"content":null}'],
    ['no tool calls', '{"content":"","tool_calls":[]}'],
    ['an empty group', '{"audio":{}}'],
    ['the signature of a thought', '{"type":"signature_delta","signature":"EqQBCg"}'],
    ['the beginning of a tool input', '{"type":"input_json_delta","partial_json":""}'],
    ['the end of messages', '{"stop_reason":"end_turn","stop_sequence":"x"}'],
    ['a number', '{"index":3,"content":null}'],
  ])('is not %s', (_name, delta) => {
    expect(counted(chunk(delta))).toBe(0)
    expect(counted(chunk('{"content":"x"}') + chunk(delta), chunk(delta))).toBe(1)
  })

  it('is not looked for in comments, other fields, the figures and the end', () => {
    const others = ': "delta":{"content":"x"}\n\nevent: delta\nid: "delta":{"content":"x"}\n\n'
    expect(counted(others + frame('{"choices":[],"usage":{"total_tokens":3}}') + frame('[DONE]'))).toBe(0)
  })

  it('is found wherever it stands, also when that changes', () => {
    const other = frame('{"choices":[{"delta":{"content":"x"},"index":0}],"id":"a"}')
    expect(counted(chunk('{"content":"x"}') + other + chunk('{"content":"x"}', 10), other)).toBe(4)
    expect(counted(frame('{"choices":[{"index":0, "delta": {"content": "x"}}]}').replaceAll('\n', '\r\n'))).toBe(1)
  })

  it('is not made of bytes that are no JSON', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('data: ', '"delta":', '{', '}', '"', '\\', ',', ':', '[', ' ', 'a', '\n', '\r\n')),
        (parts) => {
          const text = parts.join('')
          expect(counted(text)).toBeLessThanOrEqual(text.split('\n').length)
        },
      ),
    )
  })

  it('is counted as a parser would', () => {
    const delta = fc.record({ content: fc.string(), role: fc.constant('assistant') }, { requiredKeys: [] })
    fc.assert(
      fc.property(fc.array(delta), (deltas) => {
        const stream = deltas.map((each) => frame(JSON.stringify({ choices: [{ index: 0, delta: each }] }))).join('')
        expect(counted(stream)).toBe(deltas.filter(({ content = '' }) => content !== '').length)
      }),
    )
  })
})

/** As some upstreams write JSON: nothing in it but ASCII. */
const ascii = (json: string): string =>
  json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

describe('The tokens of an event stream', () => {
  const words = 'four thousand words '.repeat(1000)

  it.each([
    ['a text', { content: words }, words.length / 4],
    ['a text beside its role', { role: 'assistant', content: words }, words.length / 4],
    ['thoughts that are shown', { content: null, reasoning_content: words }, words.length / 4],
    ['text and thoughts together', { content: words, reasoning: words }, words.length / 2],
    ['the text of messages', { type: 'text_delta', text: words }, words.length / 4],
    [
      'the arguments of a tool',
      { tool_calls: [{ index: 0, id: words, function: { arguments: words } }] },
      words.length / 4,
    ],
    [
      'a list of texts',
      {
        content: [
          { type: 'text', text: words },
          { type: 'text', text: words },
        ],
      },
      words.length / 2,
    ],
    ['spoken audio, 50 ms to a token', { audio: { data: 'A'.repeat(32_000) } }, 10],
    ['no signature', { type: 'signature_delta', signature: words }, 0],
  ])('are a quarter of the bytes of its text, however few frames it came in: %s', (_what, delta, tokens) => {
    expect(counterOf(chunk(JSON.stringify(delta))).count).toBe(tokens)
    expect(counterOf(chunk(JSON.stringify(delta, undefined, 1).replaceAll('\n', ' '))).count).toBe(tokens)
    // Behind one whose place was learned.
    expect(counterOf(chunk('{}') + chunk(JSON.stringify(delta))).count).toBe(tokens)
  })

  it('are the frames of a text of which each holds about one, in any language', () => {
    const texts = ['a', ' tokens', ' information', ' пример', '日本', '\n\n']
    expect(counterOf(...texts.map((content) => chunk(JSON.stringify({ content })))).count).toBe(texts.length)
  })

  it('are as many whatever a text is cut into, its alphabet and its spelling', () => {
    const piece = fc.string({
      unit: fc.constantFrom('a', ' ', '"', '\\', '\n', 'é', '日', '🎉', '\u0001'),
      maxLength: 300,
    })
    const deltas = fc.array(fc.record({ content: piece }))
    fc.assert(
      fc.property(deltas, fc.boolean(), (pieces, isAscii) => {
        const texts = pieces.map((each) => JSON.stringify(each))
        const stream = texts.map((text) => chunk(isAscii ? ascii(text) : text)).join('')
        const bytes = Buffer.byteLength(pieces.map(({ content }) => content).join(''))
        const frames = pieces.filter(({ content }) => content !== '').length
        expect(counterOf(stream).count).toBe(bytes > 8 * frames ? Math.ceil(bytes / 4) : frames)
      }),
    )
  })

  it('are those before a checkpoint once it is rolled back', () => {
    const counter = counterOf(chunk(JSON.stringify({ content: words })))
    counter.checkpoint()
    readLines(Buffer.from(chunk(JSON.stringify({ content: words }))), ERROR_MARK, counter)
    expect(counter.count).toBe(words.length / 2)
    counter.rollBack()
    expect(counter.count).toBe(words.length / 4)
  })
})
