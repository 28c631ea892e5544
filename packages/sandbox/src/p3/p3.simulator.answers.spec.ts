import { afterEach, describe, expect, it } from '@jest/globals'
import { parseBuffer } from 'music-metadata'
import { good, type P3Answer, P3SimulatorLab } from '../../test/p3-simulator-lab.js'

const lab = new P3SimulatorLab()
const { ask, post, speak, start } = lab

afterEach(() => lab.close())

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
