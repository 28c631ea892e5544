import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseBuffer } from 'music-metadata'
import { good, KEY, type P3Answer, P3SimulatorLab } from '../../test/speech-simulator-labs.js'
import type { Simulator } from '../server/simulator-server.js'
import { recut, resamplePcm, toStereo } from './p3-audio.js'
import { startP3Simulator } from './p3.simulator.js'

describe('a P3 simulator of a test of its own', () => {
  const lab = new P3SimulatorLab()
  const { ask, post, speak, start } = lab

  afterEach(() => lab.close())

  describe('the route', () => {
    it('is one path, by POST', async () => {
      const { url } = await start()
      for (const [path, method] of [
        ['/v1/t2a_v2', 'GET'],
        ['/v1/t2a', 'POST'],
      ] as const) {
        const response = await fetch(url + path, { method })
        expect([response.status, await response.text()]).toEqual([404, '404 page not found'])
      }
    })

    it('takes any group or none when the simulator has none', async () => {
      await start()
      for (const query of ['', '?GroupId=1234']) {
        expect((await ask(good, { query })).base_resp.status_code).toBe(0)
      }
      expect(lab.simulator?.violations).toEqual([])
    })

    it('wants the right group when the simulator has one', async () => {
      await start({ groupId: '1234' })
      expect((await ask(good, { query: '?GroupId=1234' })).base_resp.status_code).toBe(0)
      for (const query of ['', '?GroupId=', '?GroupId=12345']) {
        expect((await ask(good, { query })).base_resp.status_code).toBe(1004)
      }
    })

    it('records other and repeated query parameters', async () => {
      await start()
      await ask(good, { query: '?GroupId=1&GroupId=1&model=x' })
      expect(lab.simulator?.violations).toEqual(['unknown query: model', 'repeated query: GroupId'])
    })
  })

  describe('a bad key', () => {
    it('is refused with HTTP 200 and 1004, and without data', async () => {
      await start()
      const answer = await ask(good, { key: 'other' })
      expect(answer).toEqual({
        data: null,
        trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
        base_resp: { status_code: 1004, status_msg: 'login fail: token does not match group' },
      })
    })

    it('is refused with 2049 when the simulator was started so', async () => {
      await start({ badKeyCode: 2049 })
      expect((await ask(good, { key: 'other' })).base_resp).toEqual({
        status_code: 2049,
        status_msg: 'invalid api key',
      })
    })

    it('is only `bad` when no key was named, and a missing one is always refused', async () => {
      const { url } = (lab.simulator = await startP3Simulator())
      expect((await ask(good, { key: 'anything' })).base_resp.status_code).toBe(0)
      expect((await ask(good, { key: 'bad' })).base_resp.status_code).toBe(1004)
      const response = await fetch(`${url}/v1/t2a_v2`, { method: 'POST', body: JSON.stringify(good) })
      expect((await response.json()) as P3Answer).toMatchObject({ base_resp: { status_code: 1004 } })
    })
  })

  describe('an answer in hex', () => {
    it('has the keys of the documents, its own trace id, and headers a relay must drop', async () => {
      await start()
      const response = await post(good)
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(response.headers.get('set-cookie')).not.toBeNull()
      const text = await response.text()
      expect(text).toMatch(/^\{"data":\{"audio":"[0-9a-f]+","status":2,"ced":""\},"extra_info":\{"audio_length":/)
      const answer = JSON.parse(text) as P3Answer
      expect(response.headers.get('trace-id')).toBe(answer.trace_id)
      expect(answer.extra_info).toEqual({
        audio_length: 1032,
        audio_sample_rate: 24_000,
        audio_size: (answer.data?.audio.length ?? 0) / 2,
        bitrate: 48_000,
        word_count: 4,
        invisible_character_ratio: 0,
        usage_characters: 17,
        audio_format: 'mp3',
        audio_channel: 1,
      })
    })

    it('bills a Han character twice', async () => {
      const { answer } = await speak({ text: '你好, мир 3!' })
      expect(answer.extra_info).toMatchObject({ usage_characters: 12, word_count: 4 })
    })

    it('knows the share of invisible characters', async () => {
      const { answer } = await speak({ text: 'twenty characters \u200b.' })
      expect(answer.extra_info).toMatchObject({ invisible_character_ratio: 0.05 })
    })

    it.each([
      ['mp3', 'audio/mpeg', 'MPEG', 24_000],
      ['flac', 'audio/flac', 'FLAC', 24_000],
      ['opus', 'audio/ogg', 'Ogg', 24_000],
      ['wav', 'audio/wav', 'WAVE', 32_000],
    ])(
      'in %s is audio of the length, rate and channels that extra_info tells',
      async (format, mimeType, container, rate) => {
        const { answer, audio } = await speak({
          audio_setting: { format },
          text: 'Every number here is true. '.repeat(8),
        })
        const info = answer.extra_info ?? {}
        expect(info).toMatchObject({ audio_format: format, audio_size: audio.length, audio_sample_rate: rate })
        const read = (await parseBuffer(audio, { mimeType }, { duration: true })).format
        expect(read).toMatchObject({ container, sampleRate: rate, numberOfChannels: info['audio_channel'] })
        // A FLAC stream does not tell its length.
        if (format !== 'flac') expect((read.duration ?? 0) * 1000).toBeCloseTo(Number(info['audio_length']), -2)
        const bits = Number(info['bitrate']) * Number(info['audio_length'])
        expect(Math.abs(bits / 8000 - audio.length)).toBeLessThan(100)
      },
    )

    it('in pcm comes at 32 kHz unless another rate was asked for', async () => {
      const first = await speak({ audio_setting: { format: 'pcm' } })
      expect(first.answer.extra_info).toMatchObject({ audio_sample_rate: 32_000, bitrate: 512_000, audio_length: 1020 })
      expect(first.audio.length).toBe(1020 * 64)
      for (const rate of [8000, 16_000, 22_050, 24_000, 44_100]) {
        const answer = await ask({ ...good, audio_setting: { format: 'pcm', sample_rate: rate } })
        expect(answer.extra_info).toMatchObject({ audio_sample_rate: rate, audio_size: 1.02 * rate * 2 })
        expect(answer.data?.audio).toHaveLength(1.02 * rate * 4)
      }
      expect(lab.simulator?.violations).toEqual([])
    })

    it('in pcm with two channels has every sample twice', async () => {
      const setting = { format: 'pcm', sample_rate: 24_000 }
      const mono = await speak({ audio_setting: setting })
      const answer = await ask({ ...good, audio_setting: { ...setting, channel: 2 } })
      const stereo = new Uint16Array(Uint8Array.from(Buffer.from(answer.data?.audio ?? '', 'hex')).buffer)
      const samples = new Uint16Array(Uint8Array.from(mono.audio).buffer)
      expect(Array.from(stereo)).toEqual(Array.from(samples).flatMap((sample) => [sample, sample]))
      expect(answer.extra_info).toMatchObject({ audio_channel: 2, bitrate: 768_000, audio_length: 1020 })
    })

    it('in wav is a file whose header tells the true sizes and channels', async () => {
      const { audio } = await speak({ audio_setting: { format: 'wav', sample_rate: 24_000, channel: 2 } })
      expect(audio.readUInt32LE(4)).toBe(audio.length - 8)
      expect(audio.readUInt32LE(40)).toBe(audio.length - 44)
      expect([audio.readUInt16LE(22), audio.readUInt32LE(24), audio.readUInt32LE(28)]).toEqual([2, 24_000, 96_000])
      expect(audio.readUInt16LE(32)).toBe(4)
    })

    it('is faster at a higher speed and longer with a pause', async () => {
      const fast = await speak({ voice_setting: { ...good.voice_setting, speed: 2 } })
      expect(fast.answer.extra_info?.['audio_length']).toBe(504)
      const paused = await ask({ ...good, text: 'The kettle<#1.50#> is on.' })
      expect(paused.extra_info).toMatchObject({ audio_length: 2520, usage_characters: 17, word_count: 4 })
    })
  })

  describe('links', () => {
    it('lead to the audio, with its content type and length, as often as one likes', async () => {
      const { answer, audio } = await speak({ audio_setting: { format: 'flac' } })
      const linked = await ask({ ...good, audio_setting: { format: 'flac' }, output_format: 'url' })
      expect(linked.extra_info).toEqual(answer.extra_info)
      const link = linked.data?.audio ?? ''
      expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/files\/[0-9a-f]{32}\.flac$/)
      for (let time = 0; time < 2; time += 1) {
        const response = await fetch(link)
        expect(response.headers.get('content-type')).toBe('audio/flac')
        expect(response.headers.get('content-length')).toBe(String(audio.length))
        expect(Buffer.from(await response.arrayBuffer()).equals(audio)).toBe(true)
      }
      expect(lab.simulator?.violations).toEqual([])
    })

    it('are 404 when they have expired, were never given out, or lead nowhere on wish', async () => {
      const { answer } = await speak({ output_format: 'url' }, { urlLifetimeMs: 0 })
      expect((await fetch(answer.data?.audio ?? '')).status).toBe(404)
      await lab.simulator?.close()
      const dead = await speak({ output_format: 'url', text: '#urldead' })
      expect((await fetch(dead.answer.data?.audio ?? '')).status).toBe(404)
      expect((await fetch(`${lab.simulator?.url ?? ''}/files/0.mp3`)).status).toBe(404)
    })

    it('lead to a private address on wish', async () => {
      const { answer } = await speak({ output_format: 'url', text: '#urlprivate' })
      expect(answer.data?.audio).toBe('http://169.254.169.254/x')
    })

    it('must not be sent a credential', async () => {
      const { answer } = await speak({ output_format: 'url' })
      await fetch(answer.data?.audio ?? '', { headers: { authorization: `Bearer ${KEY}` } })
      expect(lab.simulator?.violations).toEqual(['credential sent to a file link: authorization'])
    })

    it('lead to as many bytes as wanted, cut when a test says so', async () => {
      const { answer } = await speak({ output_format: 'url', text: '#bytes=1000001' })
      const bytes = Buffer.from(await (await fetch(answer.data?.audio ?? '')).arrayBuffer())
      expect(bytes.length).toBe(1_000_001)
      expect(answer.extra_info?.['audio_size']).toBe(1_000_001)
      lab.simulator?.queueFault('cut')
      await expect(fetch(answer.data?.audio ?? '').then((response) => response.arrayBuffer())).rejects.toThrow(
        'terminated',
      )
    })
  })

  describe('subtitles', () => {
    const text = '第一 place. Then<#0.60#> 3.\nDone!'

    async function subtitles(change: object): Promise<unknown> {
      const { answer } = await speak({ text, subtitle_enable: true, ...change })
      const response = await fetch(answer.data?.subtitle_file ?? '')
      expect(response.headers.get('content-type')).toBe('application/json')
      return response.json()
    }

    it('are a link to one entry per sentence, with times and places', async () => {
      expect(await subtitles({})).toEqual([
        { text: '第一 place.', time_begin: 0, time_end: 540, text_begin: 0, text_end: 9 },
        { text: 'Then 3.\n', time_begin: 600, time_end: 1680, text_begin: 10, text_end: 26 },
        { text: 'Done!', time_begin: 1680, time_end: 1980, text_begin: 26, text_end: 31 },
      ])
    })

    it('have the words on wish, at the speed of the speech', async () => {
      const voice_setting = { ...good.voice_setting, speed: 2 }
      const entries = (await subtitles({ subtitle_type: 'word', voice_setting })) as { timestamped_words: unknown }[]
      expect(entries[0]?.timestamped_words).toEqual([
        { word: '第', time_begin: 0, time_end: 30, word_begin: 0, word_end: 1 },
        { word: '一', time_begin: 30, time_end: 60, word_begin: 1, word_end: 2 },
        { word: 'place', time_begin: 90, time_end: 240, word_begin: 3, word_end: 8 },
      ])
      expect(entries).toHaveLength(3)
    })

    it('are absent unless asked for', async () => {
      const { answer } = await speak({})
      expect(answer.data).not.toHaveProperty('subtitle_file')
    })
  })
})

describe('p3 simulator', () => {
  interface Chunk {
    data: { audio: string; status: number } | null
    extra_info?: Record<string, number | string>
    trace_id: string
    base_resp: { status_code: number; status_msg: string }
  }

  let simulator: Simulator

  beforeAll(async () => {
    simulator = await startP3Simulator({ apiKey: 'p3-test-key' })
  })
  afterEach(() => {
    simulator.reset()
  })
  afterAll(async () => {
    await simulator.close()
  })

  function post(text: string, change: object = {}): Promise<Response> {
    return fetch(`${simulator.url}/v1/t2a_v2`, {
      method: 'POST',
      headers: { authorization: 'Bearer p3-test-key', 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'speech-02-hd',
        text,
        voice_setting: { voice_id: 'Calm_Woman' },
        audio_setting: { format: 'pcm', sample_rate: 24_000 },
        ...change,
      }),
    })
  }

  /** The chunks of an event stream whose framing is exactly `data: {json}` and a blank line each. */
  async function stream(text: string, change: object = {}): Promise<Chunk[]> {
    const response = await post(text, { stream: true, ...change })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    return chunksOf(await response.text())
  }

  function chunksOf(body: string): Chunk[] {
    const frames = body.split('\n\n')
    expect(frames.pop()).toBe('')
    return frames.map((frame) => {
      expect(frame).toMatch(/^data: \{[^\n]*\}$/)
      return JSON.parse(frame.slice(6)) as Chunk
    })
  }

  const bytesOf = (chunks: readonly Chunk[]): Buffer =>
    Buffer.concat(chunks.map((chunk) => Buffer.from(chunk.data?.audio ?? '', 'hex')))
  const statuses = (chunks: readonly Chunk[]): (number | undefined)[] => chunks.map((chunk) => chunk.data?.status)
  const excluded = { stream_options: { exclude_aggregated_audio: true } }
  const text = 'The kettle is on.'

  async function whole(change: object = {}): Promise<Chunk> {
    return (await (await post(text, change)).json()) as Chunk
  }

  describe('an event stream', () => {
    it('has the audio in pieces, then a last chunk with extra_info and the whole audio again', async () => {
      const chunks = await stream(text)
      const pieces = chunks.slice(0, -1)
      expect(statuses(chunks)).toEqual([...new Array<number>(9).fill(1), 2])
      const json = await whole()
      expect(bytesOf(pieces).toString('hex')).toBe(json.data?.audio)
      expect(chunks.at(-1)).toMatchObject({ data: json.data, extra_info: json.extra_info })
      expect(pieces.every((chunk) => chunk.extra_info === undefined && chunk.base_resp.status_msg === '')).toBe(true)
      expect(new Set(chunks.map((chunk) => chunk.trace_id)).size).toBe(1)
    })

    it.each(['mp3', 'flac', 'opus'])('in %s has the bytes of the whole answer', async (format) => {
      const change = { audio_setting: { format } }
      const chunks = await stream(text, { ...change, ...excluded })
      expect(bytesOf(chunks).toString('hex')).toBe((await whole(change)).data?.audio)
      expect(chunks.at(-1)?.extra_info).toMatchObject({ audio_format: format, audio_size: bytesOf(chunks).length })
    })

    it('has no audio in the last chunk when that was declined', async () => {
      expect((await stream(text, excluded)).at(-1)).toMatchObject({
        data: { audio: '', status: 2 },
        extra_info: { audio_length: 1020, usage_characters: 17 },
        base_resp: { status_code: 0, status_msg: 'success' },
      })
    })

    it('repeats the audio against the wish for #aggregate', async () => {
      const chunks = await stream(`#aggregate ${text}`, excluded)
      expect(chunks.at(-1)?.data?.audio).toBe(bytesOf(chunks.slice(0, -1)).toString('hex'))
    })

    it('is one chunk for #oneshot, also if that was declined', async () => {
      const chunks = await stream(`#oneshot ${text}`, excluded)
      expect(statuses(chunks)).toEqual([2])
      expect(bytesOf(chunks).length).toBe(chunks[0]?.extra_info?.['audio_size'])
      expect(bytesOf(chunks).length).toBe('#oneshot The kettle is on.'.length * 60 * 48)
    })

    it('tears samples apart for #odd, and loses none', async () => {
      const odd = await stream(`#odd ${text}`, excluded)
      const sizes = odd.slice(0, -2).map((chunk) => (chunk.data?.audio.length ?? 0) / 2)
      expect(new Set(sizes)).toEqual(new Set([961]))
      expect(bytesOf(odd).length).toBe('#odd The kettle is on.'.length * 60 * 48)
    })

    it('has other orders of keys for #order', async () => {
      const body = await (await post(`#order ${text}`, { stream: true })).text()
      expect(body).toMatch(/^data: \{"base_resp":\{[^}]*\},"trace_id":"\w+","data":\{"ced":"","status":1,"audio":"/)
      const chunks = chunksOf(body)
      expect(chunks.at(-1)?.data?.audio).toBe(bytesOf(chunks.slice(0, -1)).toString('hex'))
      expect(chunks.at(-1)).toHaveProperty('extra_info')
      expect(await (await post('#order')).text()).toMatch(
        /^\{"base_resp".*"status":2,"audio":"[0-9a-f]+"\},"extra_info"/,
      )
    })

    it('ends with [DONE] for #done, and only then', async () => {
      const body = await (await post('#done', { stream: true })).text()
      expect(body.endsWith('}\n\ndata: [DONE]\n\n')).toBe(true)
      expect(chunksOf(body.replace('data: [DONE]\n\n', '')).at(-1)?.data?.status).toBe(2)
    })

    it('has no extra_info for #nousage, nor has the JSON answer', async () => {
      expect((await stream('#nousage')).at(-1)).not.toHaveProperty('extra_info')
      expect(await (await post('#nousage')).json()).not.toHaveProperty('extra_info')
    })
  })

  describe('spoilt pieces', () => {
    it.each([
      ['#badhex', /^g[0-9a-f]+$/, 0],
      ['#oddhex', /^[0-9a-f]+$/, 1],
    ])('%s: the third and no other', async (word, form, remainder) => {
      const pieces = (await stream(word, excluded)).slice(0, -1).map((chunk) => chunk.data?.audio ?? '')
      expect(pieces[2]).toMatch(form)
      expect((pieces[2]?.length ?? 0) % 2).toBe(remainder)
      pieces.splice(2, 1)
      for (const piece of pieces) expect(piece).toMatch(/^([0-9a-f]{2})+$/)
      const json = (await (await post(word)).json()) as Chunk
      expect(json.data?.audio).not.toMatch(/^([0-9a-f]{2})*$/)
    })

    it('#badframe: the third one is no JSON', async () => {
      const frames = (await (await post('#badframe', { stream: true })).text()).split('\n\n')
      expect(frames[2]).toBe('data: {"data":{"audio":"ff')
      expect(frames[3]).toMatch(/^data: \{.*\}$/)
    })
  })

  describe('any number of bytes', () => {
    it('is streamed without being repeated unless the request explicitly asks for it', async () => {
      const chunks = await stream('#bytes=1000001')
      const bytes = bytesOf(chunks)
      expect(bytes.length).toBe(1_000_001)
      expect(bytes.findIndex((byte, index) => byte !== index % 251)).toBe(-1)
      expect(chunks.at(-1)).toMatchObject({ data: { audio: '' }, extra_info: { audio_size: 1_000_001 } })
      const wish = { stream_options: { exclude_aggregated_audio: false } }
      expect(bytesOf(await stream('#bytes=1000001', wish)).length).toBe(2_000_002)
      expect(bytesOf(await stream('#aggregate #bytes=1000001')).length).toBe(2_000_002)
    })

    it('is one chunk of many mebibytes, or one JSON answer', async () => {
      const [chunk] = await stream('#oneshot #bytes=3000000')
      expect(chunk?.data?.audio.length).toBe(6_000_000)
      const response = await post('#bytes=3000000')
      expect(response.headers.get('content-length')).toBeNull()
      expect(bytesOf([(await response.json()) as Chunk]).length).toBe(3_000_000)
    })

    it.each([{ stream: true }, { stream: false }])(
      'waits for its reader and stops when it leaves: %j',
      async (change) => {
        const aborted = simulator.nextAbort()
        const response = await post('#bytes=80000000000', change)
        await response.body?.cancel()
        expect(await (await aborted).closed).toBe('aborted')
      },
    )

    it('may be none', async () => {
      const chunks = await stream('#bytes=0')
      expect(statuses(chunks)).toEqual([2])
      expect(chunks[0]).toMatchObject({ extra_info: { audio_size: 0, audio_length: 0 } })
    })
  })
})

const RATES = [8000, 16_000, 22_050, 32_000, 44_100]
const samples = fc.array(fc.integer({ min: -32_768, max: 32_767 }), { minLength: 1, maxLength: 400 })

function toPieces(values: readonly number[], cut: number): Buffer[] {
  const bytes = Buffer.alloc(values.length * 2)
  values.forEach((value, index) => bytes.writeInt16LE(value, index * 2))
  return [bytes.subarray(0, cut * 2), bytes.subarray(cut * 2)]
}

function resample(pieces: Iterable<Buffer>, toHz: number): number[] {
  const bytes = Buffer.concat([...resamplePcm(pieces, 24_000, toHz)])
  return Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readInt16LE(index * 2))
}

describe('resampling', () => {
  it('keeps the duration and gives the same samples however the input is cut', () => {
    fc.assert(
      fc.property(samples, fc.nat(400), fc.constantFrom(...RATES), (values, place, toHz) => {
        const whole = resample(toPieces(values, 0), toHz)
        expect(whole.length).toBe(Math.ceil((values.length * toHz) / 24_000))
        expect(resample(toPieces(values, Math.min(place, values.length)), toHz)).toEqual(whole)
      }),
    )
  })

  it('keeps a straight line straight', () => {
    const ramp = Array.from({ length: 240 }, (_, index) => index * 100)
    const line = resample(toPieces(ramp, 100), 32_000).slice(0, 318)
    expect(line.every((value, index) => Math.abs(value - index * 75) <= 1)).toBe(true)
  })
})

describe('other shapes', () => {
  it('stereo has every sample left and right', () => {
    const stereo = Buffer.concat([...toStereo(toPieces([1, -2, 3], 1))])
    expect(stereo.toString('hex')).toBe('01000100fefffeff03000300')
  })

  it('recut pieces have the size wanted and join to the same bytes', () => {
    fc.assert(
      fc.property(samples, fc.nat(400), fc.integer({ min: 1, max: 50 }), (values, place, size) => {
        const pieces = toPieces(values, Math.min(place, values.length))
        const cut = [...recut(pieces, size)]
        expect(Buffer.concat(cut).equals(Buffer.concat(pieces))).toBe(true)
        expect(cut.slice(0, -1).every((piece) => piece.length === size)).toBe(true)
      }),
    )
  })
})
