import { afterEach, describe, expect, it } from '@jest/globals'
import { good, KEY, P3SimulatorLab } from '../../test/p3-simulator-lab.js'

const lab = new P3SimulatorLab()
const { ask, speak } = lab

afterEach(() => lab.close())

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
