import { readdirSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ManualSource, piecesOf, RecordingSink } from '../../../test/support/byte-streams.js'
import { eventually } from '../../../test/support/eventually.js'
import { event, hear, json, REFUSED } from '../../../test/support/p2-session-lab.js'
import { newCall } from '../../../test/support/raw-upstream.js'
import { collect } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import { SpooledFile } from '../../core/spooled-file.js'
import { EventDataReader, HexDecoder, JsonAudioScanner } from './p3-json-audio.js'
import { MeasuredSource } from './p3-speech.js'
import { spool, SpooledSource } from './p3-spool.js'
import { P3AudioSource, readEnvelope } from './p3-stream.js'

/** The data as it was handed on: `|` for the end of a line, `#` for the end of an event. */
function read(stream: string, cuts: readonly number[] = []): string {
  let seen = ''
  const reader = new EventDataReader({
    data: (piece) => {
      seen += piece.toString()
    },
    lineEnd: () => {
      seen += '|'
    },
    eventEnd: () => {
      seen += '#'
    },
  })
  for (const piece of piecesOf(Buffer.from(stream), cuts)) reader.write(piece)
  return seen
}

describe('the data of an event stream', () => {
  it.each([
    ['a line and an empty one', 'data: a\n\ndata: b\n\n', ' a|# b|#'],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ' a\r|# b\r|#'],
    ['no white space', 'data:a\n\n', 'a|#'],
    ['several lines of one event', 'data: a\ndata: b\n\n', ' a| b|#'],
    ['no end at all', 'data: a', ' a'],
    ['comments', ': data: x\n\ndata: a\n: y\n\n', '# a|#'],
    ['other fields', 'event: data: x\nid: 1\nretry: 5\ndata: a\n\n', ' a|#'],
    ['names that begin alike', 'dat\ndata\ndata2: x\nxdata: y\ndataa: z\nda\rta: x\n\n', '#'],
    ['colons in the data', 'data: data: a\n\n', ' data: a|#'],
    ['no data', 'data:\n\n', '|#'],
  ])('is read with %s, wherever it was cut', (_name, stream, expected) => {
    fc.assert(
      fc.property(fc.array(fc.nat(60)), (cuts) => {
        expect(read(stream, cuts)).toBe(expected)
      }),
    )
  })
})

const cuts = fc.array(fc.nat(200))

function decoded(text: Buffer, at: readonly number[]): Buffer {
  const decoder = new HexDecoder()
  const bytes = Buffer.concat(piecesOf(text, at).map((piece) => decoder.decode(piece)))
  decoder.finish()
  return bytes
}

describe('hexadecimal audio', () => {
  it('is the same bytes wherever its text was cut, in small and capital digits', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), cuts, fc.boolean(), (array, at, isCapital) => {
        const bytes = Buffer.from(array)
        const text = isCapital ? bytes.toString('hex').toUpperCase() : bytes.toString('hex')
        expect(decoded(Buffer.from(text), at)).toEqual(bytes)
      }),
    )
  })

  it('is refused at any other character, wherever it stands and wherever its text was cut', () => {
    const alien = fc.integer({ min: 0, max: 255 }).filter((byte) => !/[0-9a-f]/i.test(String.fromCharCode(byte)))
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 80 }), fc.nat(), alien, cuts, (array, place, byte, at) => {
        const text = Buffer.from(Buffer.from(array).toString('hex'))
        text[place % text.length] = byte
        expect(() => decoded(text, at)).toThrow('not hexadecimal')
      }),
    )
  })

  it('is refused when its last digit has no partner', () => {
    expect(() => decoded(Buffer.from('fff'), [])).toThrow('half a byte')
    expect(() => decoded(Buffer.from('fff'), [1, 2])).toThrow('half a byte')
  })
})

interface Scanned {
  readonly audio: Buffer
  readonly text: string
  readonly isClosed: boolean
}

function scanned(json: string | Buffer, cuts: readonly number[] = []): Scanned {
  const heard: Buffer[] = []
  const scanner = new JsonAudioScanner((audio) => heard.push(audio))
  for (const piece of piecesOf(Buffer.from(json), cuts)) scanner.write(piece)
  const { isClosed } = scanner
  return { audio: Buffer.concat(heard), text: scanner.takeText(), isClosed }
}

/** Names that could be taken for the path of the audio stand everywhere. */
const key = fc.oneof(fc.constantFrom('data', 'audio', 'status'), fc.string())
const value = fc.object({
  key,
  maxDepth: 3,
  maxKeys: 4,
  values: [fc.string(), fc.double(), fc.boolean(), fc.constant(null)],
})

const others = fc.dictionary(
  key.filter((name) => name !== 'data' && name !== 'audio'),
  fc.oneof(value, fc.array(value, { maxLength: 3 }), fc.string()),
  { maxKeys: 4 },
)

const answer = fc
  .record({ before: others, beside: others, behind: others, after: others, audio: fc.uint8Array({ maxLength: 100 }) })
  .map(({ before, beside, behind, after, audio }) => ({
    bytes: Buffer.from(audio),
    whole: { ...before, data: { ...beside, audio: Buffer.from(audio).toString('hex'), ...behind }, ...after },
    rest: { ...before, data: { ...beside, audio: '', ...behind }, ...after },
  }))

describe('the audio in an answer of JSON', () => {
  it('is taken out wherever the bytes were cut, and everything else stays as it was', () => {
    fc.assert(
      fc.property(answer, fc.array(fc.nat(2000)), fc.nat(2), ({ bytes, whole, rest }, cuts, indent) => {
        const { audio, text, isClosed } = scanned(JSON.stringify(whole, null, indent), cuts)
        expect(audio).toEqual(bytes)
        expect(text).toBe(JSON.stringify(rest, null, indent))
        expect(isClosed).toBe(true)
      }),
    )
  })

  it('never looks complete when a part of the answer is missing', () => {
    fc.assert(
      fc.property(answer, fc.nat(), ({ whole }, length) => {
        const json = Buffer.from(JSON.stringify(whole))
        expect(scanned(json.subarray(0, length % json.length)).isClosed).toBe(false)
      }),
    )
  })

  it.each([
    ['of another object', '{"sound":{"audio":"zz"}}'],
    ['of an object further down', '{"x":{"data":{"audio":"zz"}},"data":{"x":{"audio":"zz"}}}'],
    ['of the answer itself', '{"audio":"zz"}'],
    ['of a list', '{"data":[{"audio":"zz"}]}'],
    ['of a list in its place', '{"data":["audio","zz"]}'],
    ['a value that is called so', '{"data":"audio","x":"zz"}'],
    ['in a list that is the whole answer', '[{"data":{"audio":"zz"}}]'],
    ['in a text', '{"x":"{\\"data\\":{\\"audio\\":\\"zz\\"}}","data":{"x":"\\"audio\\":"}}'],
    ['in a list of its place', '{"data":{"audio":["zz"]}}'],
    ['that is none', '{"data":{"audio":null}}'],
  ])('is not mistaken for the audio %s', (_place, json) => {
    expect(scanned(json)).toEqual({ audio: Buffer.alloc(0), text: json, isClosed: true })
  })

  it('may be of any length, while everything else has a limit', () => {
    let heardBytes = 0
    const scanner = new JsonAudioScanner((audio) => {
      heardBytes += audio.length
    })
    scanner.write(Buffer.from('{"data":{"audio":"'))
    const piece = Buffer.alloc(65_536, 'f')
    for (let count = 0; count < 160; count++) scanner.write(piece)
    expect(heardBytes).toBe((65_536 * 160) / 2)
    scanner.write(Buffer.from('","x":"'))
    expect(() => {
      scanner.write(piece)
    }).toThrow('too much beside the audio')
  })

  it('is refused when it is not hexadecimal', () => {
    expect(() => scanned('{"data":{"audio":"fg"}}')).toThrow('not hexadecimal')
    expect(() => scanned('{"data":{"audio":"fff"}}')).toThrow('half a byte')
    expect(() => scanned('{"data":{"audio":"\\u0066f"}}')).toThrow('not hexadecimal')
  })

  it('is refused in an answer that is nested without end', () => {
    expect(scanned('['.repeat(64)).isClosed).toBe(false)
    expect(() => scanned('['.repeat(65))).toThrow('too deep')
  })

  it('is read anew for each answer', () => {
    const heard: string[] = []
    const scanner = new JsonAudioScanner((audio) => heard.push(audio.toString('hex')))
    // What is cut off says nothing about what follows.
    for (const json of ['{"data":{"audio":"aab', '{"data":{"x":"\\', '{"data":', '{"data":{"audio":"ccdd"}}']) {
      scanner.write(Buffer.from(json))
      expect(scanner.takeText()).toBe(json.replace(/"(?:aab|ccdd)/, '"'))
      expect(scanner.isClosed).toBe(false)
    }
    expect(heard).toEqual(['aa', 'ccdd'])
  })
})

describe('any answer', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 30 }), { minLength: 1, maxLength: 6 })
  const style = fc.record({
    newline: fc.constantFrom('\n', '\r\n'),
    comment: fc.constantFrom('', ': keep-alive', 'event: x'),
    repeats: fc.boolean(),
    ending: fc.constantFrom('full', 'done', 'no empty line', 'no line end'),
    form: fc.constantFrom('events', 'status first', 'one line each', 'object'),
    indent: fc.boolean(),
  })

  interface Sample {
    readonly audio: Buffer
    readonly stream: Buffer
    /** Position behind the last byte without which the answer is not complete. */
    readonly needed: number
  }

  const sample = fc.tuple(pieces, style).map(([parts, how]): Sample => {
    const buffers = parts.map((part) => Buffer.from(part))
    const audio = Buffer.concat(buffers)
    const object = (bytes: Buffer, status: number): string => {
      const hex = bytes.toString('hex')
      const data = how.form === 'status first' ? { status, audio: hex } : { audio: hex, status }
      return JSON.stringify({ data, base_resp: { status_code: 0, status_msg: '' } }, null, how.indent ? 1 : 0)
    }
    if (how.form === 'object') {
      const stream = Buffer.from(object(audio, 2))
      return { audio, stream, needed: stream.length }
    }
    const lines = (text: string): string => `data: ${text.replaceAll('\n', `${how.newline}data: `)}${how.newline}`
    const empty = how.form === 'one line each' ? '' : how.newline
    const begun = buffers.map(
      (bytes) => `${lines(object(bytes, 1))}${how.comment}${how.comment && how.newline}${empty}`,
    )
    const last = lines(object(how.repeats ? audio : Buffer.alloc(0), 2))
    const needed = Buffer.byteLength(begun.join('') + last.trimEnd())
    const tail = { full: empty, done: `${empty}data: [DONE]\n\n`, 'no empty line': '', 'no line end': '' }[how.ending]
    const whole = begun.join('') + (how.ending === 'no line end' ? last.trimEnd() : last + tail)
    return { audio, stream: Buffer.from(whole), needed }
  })

  function heardBytes(stream: Buffer, cuts: readonly number[]): { bytes: Buffer; ending: RecordingSink['ending'] } {
    const body = new ManualSource()
    const sink = new RecordingSink()
    new P3AudioSource(body, () => undefined).start(sink)
    body.data(...piecesOf(stream, cuts))
    body.end()
    return { bytes: Buffer.concat(sink.chunks), ending: sink.ending }
  }

  const cuts = fc.array(fc.nat(1500))

  it('is the same audio wherever its bytes were cut', () => {
    fc.assert(
      fc.property(sample, cuts, ({ audio, stream }, at) => {
        const { bytes, ending } = heardBytes(stream, at)
        expect(bytes).toEqual(audio)
        if (audio.length > 0) expect(ending).toBe('end')
      }),
      { numRuns: 400 },
    )
  })

  it('is never taken for complete when it breaks off anywhere, and what was heard until then is true', () => {
    fc.assert(
      fc.property(sample, cuts, fc.nat(), ({ audio, stream, needed }, at, length) => {
        const { bytes, ending } = heardBytes(stream.subarray(0, length % needed), at)
        expect(ending).toBeInstanceOf(GatewayError)
        expect(bytes).toEqual(audio.subarray(0, bytes.length))
      }),
      { numRuns: 400 },
    )
  })
})

describe('the audio of an event stream', () => {
  it('is passed on in order, without the repetition in the last event', () => {
    expect(hear([event('one '), event('two '), event('three'), event('one two three', 2)])).toMatchObject({
      audio: 'one two three',
      ending: 'end',
    })
  })

  it('is that of the last event when nothing was said before it', () => {
    expect(hear([event('everything', 2)])).toMatchObject({ audio: 'everything', ending: 'end' })
    expect(hear([event('', 1), event('everything', 2)])).toMatchObject({ audio: 'everything', ending: 'end' })
  })

  it('is whole behind a byte-order mark and empty lines', () => {
    const stream = Buffer.from(`\ufeff\r\n\n${event('one')}${event('', 2)}`)
    for (const cut of [1, 2, 3, 5]) {
      expect(hear(piecesOf(stream, [cut]))).toMatchObject({ audio: 'one', ending: 'end' })
    }
  })

  it('leaves before its own event has ended, as long as nothing was said before it', () => {
    const head = event('soon').slice(0, -30)
    const tail = event('soon').slice(-30)
    expect(hear([head], 'open').audio).toBe('soon')
    expect(hear([head, tail, head], 'open').audio).toBe('soon')
    expect(hear([head, tail, head, tail], 'open').audio).toBe('soonsoon')
  })

  it.each([
    ['', 'The upstream answered with something that is not speech.'],
    ['<html><body>data: x</body></html>', 'The upstream answered with something that is not speech.'],
    ['data: [DONE]\n\n', 'The upstream answered with something that is not speech.'],
    [event('', 2), 'The upstream answered without audio.'],
    [event('one'), 'The upstream ended its answer before it was complete.'],
    [event('one') + event('two', 2).slice(0, -10), 'The upstream ended its answer before it was complete.'],
    ['data: {"data":{"audio":"fg","status":2}}\n\n', 'The upstream sent audio that is not hexadecimal.'],
    ['data: {"data":{"audio":"fff","status":2}}\n\n', 'The upstream sent half a byte of audio.'],
    ['data: {"data":{"\\u0061udio":"ff","status":2}}\n\n', 'The upstream sent audio that cannot be read.'],
    ['data: {"data":{"audio":"ff","status":2},}\n\n', 'The upstream answered with broken JSON.'],
    ['data: {"data":{"audio":"ff\n\n', 'The upstream answered with broken JSON.'],
    ['data: 7\n\n', 'The upstream answered with broken JSON.'],
    [
      event('one', 2, { base_resp: { status_code: '1004' } }),
      'The upstream answered without a status that can be read.',
    ],
  ])('is broken in %j', (stream, message) => {
    const heard = hear([stream])
    expect(heard.ending).toBe(message)
    expect(heard.error).toMatchObject({ kind: 'upstream_failed', details: { attempt: { channelError: true } } })
  })

  it('ends with the failure that an event reports, and the upstream call with it', () => {
    const refusal = 'data: {"data":null,"base_resp":{"status_code":1002,"status_msg":"slow down"}}\n\n'
    expect(hear([refusal, event('late', 2)])).toMatchObject({ audio: '', error: REFUSED, asked: ['cancel'] })
    expect(hear([event('one') + refusal + event('one', 2)])).toMatchObject({ audio: 'one', error: REFUSED })
  })

  it('is whole once its last event has come, whatever happens afterwards', () => {
    const whole = event('one') + event('', 2)
    const cut = new GatewayError('upstream_failed', 'cut')
    expect(hear([whole], cut)).toMatchObject({ audio: 'one', ending: 'end' })
    expect(hear([whole + 'data: {"base_resp":{"status_code":1000}}\n\nrubbish'])).toMatchObject({ ending: 'end' })
    expect(hear([event('one')], cut)).toMatchObject({ audio: 'one', error: cut })
  })

  it('ends with the event that completes it, without waiting for the upstream to hang up', () => {
    const body = new ManualSource()
    const sink = new RecordingSink()
    new P3AudioSource(body, () => undefined).start(sink)
    body.data(event('one') + event('', 2))
    expect(sink.ending).toBe('end')
    body.end()
    expect(sink.text).toBe('one')
  })

  it('tells what each event says besides', () => {
    const figures = { extra_info: { usage_characters: 34, audio_length: 1240 }, base_resp: { status_code: 0 } }
    expect(hear([event('one') + event('', 2, figures)]).envelopes).toEqual([
      { code: 0, message: '', audio: '', status: 1, traceId: 't' },
      { code: 0, message: '', audio: '', status: 2, traceId: 't', billedCharacters: 34, audioMs: 1240 },
    ])
  })

  it('is dropped in any length where it is a repetition, and refused where it is not', () => {
    const large = 'x'.repeat(4 * 1024 * 1024 + 1)
    expect(hear([event('one'), event(large, 2)])).toMatchObject({ audio: 'one', ending: 'end' })
    expect(hear([event('one'), event(large, 1)]).ending).toBe('The upstream sent too much audio in one event.')
    expect(hear([event('one'), event(large.slice(1), 1), event('', 2)]).audio).toHaveLength(large.length + 2)
    expect(hear([event(large, 1), event('', 2)]).audio).toHaveLength(large.length)
  })

  it('is given up by its reader, and nothing comes after that', () => {
    const body = new ManualSource()
    const source = new P3AudioSource(body, () => undefined)
    const sink = new RecordingSink()
    source.start({
      data: (chunk) => {
        sink.data(chunk)
        source.cancel()
        body.fail(new GatewayError('caller_left', 'left'))
      },
      end: () => {
        sink.end()
      },
      fail: (error) => {
        sink.fail(error)
      },
    })
    body.data(event('one') + event('two') + event('', 2))
    expect([sink.text, sink.failure, body.asked]).toEqual(['one', 'caller_left', ['cancel']])
  })

  it('is slowed down where it comes from', () => {
    const body = new ManualSource()
    const source = new P3AudioSource(body, () => undefined)
    source.pause()
    source.resume()
    expect(body.asked).toEqual(['pause', 'resume'])
  })

  it('holds no connection once it is whole, whether its reader paused before its end or pauses after it', () => {
    for (const pausesAt of ['data', 'end'] as const) {
      const body = new ManualSource()
      const source = new P3AudioSource(body, () => undefined)
      source.start({
        data: () => {
          if (pausesAt === 'data') source.pause()
        },
        end: () => {
          if (pausesAt === 'end') source.pause()
        },
        fail: () => undefined,
      })
      body.data(event('one') + event('', 2))
      expect(body.asked.at(-1)).toBe('resume')
      source.pause()
      expect(body.asked.at(-1)).toBe('resume')
    }
  })
})

describe('the audio of one JSON object in place of events', () => {
  it.each([2, undefined])('is passed on while it arrives, with the status %s', (status) => {
    const whole = json('everything', status)
    expect(hear([whole.slice(0, 30)], 'open').audio).not.toBe('')
    expect(hear([whole])).toMatchObject({ audio: 'everything', ending: 'end' })
    expect(hear(['\n \ufeff', whole, '\r\n'])).toMatchObject({ audio: 'everything', ending: 'end' })
  })

  it('is incomplete when it says so, and broken when it is cut', () => {
    expect(hear([json('some', 1)]).ending).toBe('The upstream ended its answer before it was complete.')
    expect(hear([json('some', 2).slice(0, -1)]).ending).toBe('The upstream answered with broken JSON.')
    expect(hear([json('some', 2) + json('some', 2)]).ending).toBe('The upstream answered with broken JSON.')
    expect(hear(['{}']).ending).toBe('The upstream answered without audio.')
  })

  it('is a failure when the object reports one', () => {
    expect(hear(['{"data":null,"base_resp":{"status_code":1004}}'])).toMatchObject({ audio: '', error: REFUSED })
  })
})

const withStatus = (status: unknown): string =>
  JSON.stringify({ data: { audio: 'https://files.example.com/a.mp3', status: 2 }, base_resp: status })

const UNREADABLE = { kind: 'upstream_failed', details: { attempt: { phase: 'answered', channelError: true } } }

function failureOf(text: string): unknown {
  try {
    return readEnvelope(text)
  } catch (error) {
    return error
  }
}

describe('what P3 says around the audio', () => {
  it('is read from where it stands', () => {
    const extra_info = { usage_characters: 34, audio_length: 1240, audio_size: 4096 }
    const data = { audio: 'https://files.example.com/a.mp3', status: 2, subtitle_file: 'https://files.example.com/s' }
    const base_resp = { status_code: 1002, status_msg: 'slow down' }
    expect(readEnvelope(JSON.stringify({ data, extra_info, trace_id: 't', base_resp }))).toEqual({
      code: 1002,
      message: 'slow down',
      audio: data.audio,
      status: 2,
      subtitleFile: data.subtitle_file,
      billedCharacters: 34,
      audioMs: 1240,
      audioBytes: 4096,
      traceId: 't',
    })
  })

  it('is no figure where it is none', () => {
    const extra_info = { usage_characters: 0, audio_length: '1240', audio_size: -1 }
    expect(readEnvelope(JSON.stringify({ extra_info }))).toEqual({ code: 0, message: '', audio: '' })
  })

  it.each(['', '[]', 'null', '7', '"x"', '{"data":', '{} {}'])('is broken in %j', (text) => {
    expect(failureOf(text)).toMatchObject(UNREADABLE)
  })
})

describe('the status of P3', () => {
  it('is success where there is none: then the audio decides', () => {
    for (const status of [undefined, null]) expect(readEnvelope(withStatus(status)).code).toBe(0)
    expect(readEnvelope(withStatus({ status_code: 0 })).code).toBe(0)
  })

  it.each([-1, 1004, 20132])('is a failure with the code %s', (code) => {
    expect(readEnvelope(withStatus({ status_code: code, status_msg: 5 }))).toMatchObject({ code, message: '' })
  })

  it.each([
    {},
    [],
    'failed',
    0,
    true,
    { status_code: null },
    { status_code: '0' },
    { status_code: '1004' },
    { status_code: 0.5 },
  ])('is no success where it cannot be read: %j', (status) => {
    const failure = failureOf(withStatus(status))
    expect(failure).toBeInstanceOf(GatewayError)
    expect(failure).toMatchObject(UNREADABLE)
  })
})

function measured(leastBytes: number): { body: ManualSource; sink: RecordingSink; source: MeasuredSource } {
  const body = new ManualSource()
  const sink = new RecordingSink()
  const source = new MeasuredSource(body, leastBytes, (bytes) => new GatewayError('upstream_failed', `${bytes} bytes`))
  source.start(sink)
  return { body, sink, source }
}

describe('A body of an announced length', () => {
  it.each([0, 3, 4])('of 4 bytes where %i were announced is whole', (leastBytes) => {
    const { body, sink } = measured(leastBytes)
    body.data('ab', 'cd')
    body.end()
    expect([sink.text, sink.ending]).toEqual(['abcd', 'end'])
  })

  it('that ends before it is cut off, and what came until then has been passed on', () => {
    const { body, sink } = measured(5)
    body.data('ab', 'cd')
    expect(sink.text).toBe('abcd')
    body.end()
    expect(sink.ending).toMatchObject({ kind: 'upstream_failed', message: '4 bytes' })
  })

  it('fails with its own failure, and is slowed down and given up where it comes from', () => {
    const { body, sink, source } = measured(5)
    source.pause()
    source.resume()
    source.cancel()
    expect(body.asked).toEqual(['pause', 'resume', 'cancel'])
    body.fail(new GatewayError('caller_left', 'left'))
    expect(sink.failure).toBe('caller_left')
  })
})

describe('spooled audio', () => {
  const MEMORY_BYTES = 1000
  const MAXIMUM_BYTES = 400_000
  const AUDIO = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251))

  let directory: string

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'spooled-audio-spec-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  const file = (): SpooledFile => new SpooledFile({ directory, memoryBytes: MEMORY_BYTES })

  /** Named files, and on Linux open descriptors of files without a name. */
  function leftovers(): string[] {
    const open = process.platform === 'linux' ? readdirSync('/proc/self/fd').map(targetOf) : []
    return [...readdirSync(directory), ...open.filter((target) => target.startsWith(directory))]
  }

  function targetOf(descriptor: string): string {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`)
    } catch {
      return ''
    }
  }

  const gone = (): Promise<void> => eventually(() => leftovers().length === 0)

  async function spooled(bytes = AUDIO): Promise<SpooledFile> {
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    body.data(bytes)
    body.end()
    return await done
  }

  it.each([10, MEMORY_BYTES, AUDIO.length])('of %s bytes is read back as it came, and then gone', async (size) => {
    const bytes = AUDIO.subarray(0, size)
    const kept = await spooled(bytes)
    expect(kept.size).toBe(size)
    if (process.platform === 'linux') expect(leftovers()).toHaveLength(size > MEMORY_BYTES ? 1 : 0)
    const read = await collect(
      new SpooledSource(kept, newCall().disconnect),
      AUDIO.length,
      () => new GatewayError('internal', ''),
    )
    expect(read.equals(bytes)).toBe(true)
    await gone()
  })

  it('arrives no faster than the disk takes it', async () => {
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    body.data(AUDIO, AUDIO)
    expect(body.asked).toEqual(['pause'])
    await eventually(() => body.asked.length === 2)
    expect(body.asked).toEqual(['pause', 'resume'])
    body.end()
    await (await done).remove()
  })

  it('is gone when its source fails', async () => {
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    const cut = new GatewayError('upstream_failed', 'cut')
    body.data(AUDIO)
    if (process.platform === 'linux') await eventually(() => leftovers().length === 1)
    body.fail(cut)
    await expect(done).rejects.toBe(cut)
    await gone()
  })

  it('is refused, and gone, once it is longer than any speech', async () => {
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    body.data(AUDIO, AUDIO)
    expect(body.asked).not.toContain('cancel')
    body.data('x', 'late')
    expect(body.asked).toContain('cancel')
    await expect(done).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'answered', channelError: true } },
    })
    await gone()
  })

  it('that the disk refuses ends the upstream call and is the gateway’s fault', async () => {
    await rm(directory, { recursive: true })
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    body.data(AUDIO)
    await expect(done).rejects.toMatchObject({ kind: 'internal' })
    expect(body.asked).toContain('cancel')
  })

  it('is gone when its caller leaves, before or while it is read', async () => {
    for (const isStarted of [false, true]) {
      const call = newCall()
      const source = new SpooledSource(await spooled(), call.disconnect)
      const sink = new RecordingSink()
      if (isStarted) source.start(sink)
      call.disconnect.abort()
      if (!isStarted) source.start(sink)
      expect(sink.failure).toBe('caller_left')
      await gone()
    }
    const left = newCall()
    left.disconnect.abort()
    const sink = new RecordingSink()
    new SpooledSource(await spooled(), left.disconnect).start(sink)
    expect(sink.failure).toBe('caller_left')
    await gone()
  })

  it('waits for a slow reader and is gone when that gives it up', async () => {
    // More than is read at once.
    const source = new SpooledSource(await spooled(Buffer.concat([AUDIO, AUDIO])), newCall().disconnect)
    const sink = new RecordingSink()
    source.start({
      data: (chunk) => {
        sink.data(chunk)
        if (sink.chunks.length === 1) source.pause()
        else source.cancel()
      },
      end: () => {
        sink.end()
      },
      fail: (error) => {
        sink.fail(error)
      },
    })
    await eventually(() => sink.chunks.length === 1)
    let turns = 0
    await eventually(() => ++turns > 100)
    expect(sink.chunks).toHaveLength(1)
    source.resume()
    await eventually(() => sink.failure === 'caller_left')
    expect(sink.chunks).toHaveLength(2)
    await gone()
  })
})
