import { afterEach, describe, expect, it } from '@jest/globals'
import { parseBuffer } from 'music-metadata'

import type { Simulator } from '../simulator.js'
import { startP3Simulator, type P3SimulatorOptions } from './p3.simulator.js'

interface Answer {
  data: { audio: string; status: number; ced: string; subtitle_file?: string } | null
  extra_info?: Record<string, number | string>
  trace_id: string
  base_resp: { status_code: number; status_msg: string }
}

const KEY = 'p3-test-key'
const good = {
  model: 'speech-2.5-hd-preview',
  text: 'The kettle is on.',
  voice_setting: { voice_id: 'English_expressive_narrator' },
}
let simulator: Simulator | undefined

afterEach(async () => {
  await simulator?.close()
  simulator = undefined
})

async function start(options: P3SimulatorOptions = {}): Promise<Simulator> {
  simulator = await startP3Simulator({ apiKey: KEY, ...options })
  return simulator
}

function post(body: object | string, options: { key?: string; query?: string; type?: string } = {}): Promise<Response> {
  return fetch(`${simulator?.url ?? ''}/v1/t2a_v2${options.query ?? ''}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${options.key ?? KEY}`, 'content-type': options.type ?? 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

async function ask(body: object | string, options: Parameters<typeof post>[1] = {}): Promise<Answer> {
  const response = await post(body, options)
  expect(response.status).toBe(200)
  return (await response.json()) as Answer
}

async function speak(change: object, options: P3SimulatorOptions = {}): Promise<{ answer: Answer; audio: Buffer }> {
  await start(options)
  const answer = await ask({ ...good, ...change })
  expect(answer.base_resp).toEqual({ status_code: 0, status_msg: 'success' })
  return { answer, audio: Buffer.from(answer.data?.audio ?? '', 'hex') }
}

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
    expect(simulator?.violations).toEqual([])
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
    expect(simulator?.violations).toEqual(['unknown query: model', 'repeated query: GroupId'])
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
    expect((await ask(good, { key: 'other' })).base_resp).toEqual({ status_code: 2049, status_msg: 'invalid api key' })
  })

  it('is only `bad` when no key was named, and a missing one is always refused', async () => {
    simulator = await startP3Simulator()
    expect((await ask(good, { key: 'anything' })).base_resp.status_code).toBe(0)
    expect((await ask(good, { key: 'bad' })).base_resp.status_code).toBe(1004)
    const response = await fetch(`${simulator.url}/v1/t2a_v2`, { method: 'POST', body: JSON.stringify(good) })
    expect((await response.json()) as Answer).toMatchObject({ base_resp: { status_code: 1004 } })
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
    const answer = JSON.parse(text) as Answer
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
    expect(simulator?.violations).toEqual([])
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
    expect(simulator?.violations).toEqual([])
  })

  it('are 404 when they have expired, were never given out, or lead nowhere on wish', async () => {
    const { answer } = await speak({ output_format: 'url' }, { urlLifetimeMs: 0 })
    expect((await fetch(answer.data?.audio ?? '')).status).toBe(404)
    await simulator?.close()
    const dead = await speak({ output_format: 'url', text: '#urldead' })
    expect((await fetch(dead.answer.data?.audio ?? '')).status).toBe(404)
    expect((await fetch(`${simulator?.url ?? ''}/files/0.mp3`)).status).toBe(404)
  })

  it('lead to a private address on wish', async () => {
    const { answer } = await speak({ output_format: 'url', text: '#urlprivate' })
    expect(answer.data?.audio).toBe('http://169.254.169.254/x')
  })

  it('must not be sent a credential', async () => {
    const { answer } = await speak({ output_format: 'url' })
    await fetch(answer.data?.audio ?? '', { headers: { authorization: `Bearer ${KEY}` } })
    expect(simulator?.violations).toEqual(['credential sent to a file link: authorization'])
  })

  it('lead to as many bytes as wanted, cut when a test says so', async () => {
    const { answer } = await speak({ output_format: 'url', text: '#bytes=1000001' })
    const bytes = Buffer.from(await (await fetch(answer.data?.audio ?? '')).arrayBuffer())
    expect(bytes.length).toBe(1_000_001)
    expect(answer.extra_info?.['audio_size']).toBe(1_000_001)
    simulator?.queueFault('cut')
    await expect(fetch(answer.data?.audio ?? '').then((response) => response.arrayBuffer())).rejects.toThrow()
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
