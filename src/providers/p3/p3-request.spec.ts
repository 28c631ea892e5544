import { describe, expect, it } from '@jest/globals'
import { AUDIO_FORMATS } from '../../dialects/audio-formats.js'
import type { SpeechFields } from '../speech.contract.js'
import { p3Request } from './p3-request.js'
import { P3_VOICES } from './p3-voices.table.js'

interface Sent {
  readonly stream: boolean
  readonly voice_setting: Readonly<Record<string, unknown>>
  readonly audio_setting: Readonly<Record<string, unknown>>
  readonly [name: string]: unknown
}

const fields = (more: Partial<SpeechFields> = {}): SpeechFields => ({
  model: 'speech-02-hd',
  input: 'The kettle is on.',
  voice: 'alloy',
  ...more,
})

function sent(more: Partial<SpeechFields>, options: Readonly<Record<string, unknown>> = {}): Sent {
  const { body } = p3Request(fields(more), { upstreamModel: 'upstream-name', options })
  return JSON.parse(body.toString()) as Sent
}

describe('the request to P3', () => {
  it('is streamed, says everything once, and nothing that was not asked for', () => {
    expect(sent({ instructions: 'whisper' })).toEqual({
      model: 'upstream-name',
      text: 'The kettle is on.',
      stream: true,
      stream_options: { exclude_aggregated_audio: true },
      voice_setting: { voice_id: 'English_expressive_narrator' },
      audio_setting: { format: 'mp3' },
      output_format: 'hex',
    })
  })

  it.each([
    [{ subtitle_enable: true }, { subtitle_enable: true, output_format: 'hex' }],
    [{ output_format: 'url' }, { output_format: 'url' }],
    [
      { output_format: 'url', subtitle_enable: true },
      { output_format: 'url', subtitle_enable: true },
    ],
  ])('is not streamed for %j, which upstream cannot', (metadata, expected) => {
    const request = sent({ metadata })
    expect(request).toMatchObject({ stream: false, ...expected })
    expect(request).not.toHaveProperty('stream_options')
  })

  it('asks for each format in upstream’s own word, for samples where upstream cannot stream it, or for mp3', () => {
    const asked = Object.keys(AUDIO_FORMATS).map((response_format) => {
      const { body, format, sentAs, fallback } = p3Request(fields({ response_format }), {
        upstreamModel: 'm',
        options: {},
      })
      const { audio_setting } = JSON.parse(body.toString()) as Sent
      return [response_format, audio_setting, format, sentAs, fallback]
    })
    const samples = { format: 'pcm', sample_rate: 24_000, channel: 1 }
    expect(asked).toEqual([
      ['mp3', { format: 'mp3' }, 'mp3', 'mp3', undefined],
      ['wav', samples, 'pcm', 'wav', undefined],
      ['aac', { format: 'mp3' }, 'mp3', 'mp3', 'mp3'],
      ['flac', { format: 'flac' }, 'flac', 'flac', undefined],
      ['opus', { format: 'opus' }, 'opus', 'opus', undefined],
      ['pcm', samples, 'pcm', 'pcm', undefined],
    ])
  })

  it.each([
    [0.25, 0.5],
    [0.5, 0.5],
    [1.25, 1.25],
    [2, 2],
    [4, 2],
  ])('asks for the speed %s as %s', (speed, asked) => {
    expect(sent({ speed }).voice_setting['speed']).toBe(asked)
  })

  it('takes the speed of the metadata before that of the request, and none when neither has one', () => {
    expect(sent({ speed: 4, metadata: { voice_setting: { speed: 0.7 } } }).voice_setting['speed']).toBe(0.7)
    expect(sent({ speed: null }).voice_setting).not.toHaveProperty('speed')
  })

  it('carries the metadata where upstream expects it', () => {
    const metadata = { voice_setting: { vol: 2, pitch: 1.6, emotion: 'sad' }, language_boost: 'auto' }
    const { voice_setting, language_boost } = sent({ metadata })
    expect(voice_setting).toEqual({ voice_id: P3_VOICES.alloy, vol: 2, pitch: 2, emotion: 'sad' })
    expect(language_boost).toBe('auto')
  })

  it('is refused for a longer text than P3 takes, counted in characters', () => {
    expect(sent({ input: '😀'.repeat(10_000) })['text']).toHaveLength(20_000)
    expect(() => sent({ input: 'a'.repeat(10_001) })).toThrow('at most 10000 characters')
  })
})

describe('the voice at P3', () => {
  const voiceOf = (voice: SpeechFields['voice'], voices?: unknown): unknown =>
    sent({ voice }, voices === undefined ? {} : { voices }).voice_setting['voice_id']

  it('is another one for each of the six standard names', () => {
    const names = ['alloy', 'echo', 'fable', 'onyx', 'nova', 'shimmer']
    expect(new Set(names.map((name) => voiceOf(name))).size).toBe(6)
    for (const name of names) expect(voiceOf(name)).not.toBe(name)
  })

  it('is the channel’s where its table names one', () => {
    const table = { alloy: 'Calm_Woman', narrator: 'Wise_Woman' }
    expect(voiceOf('alloy', table)).toBe('Calm_Woman')
    expect(voiceOf('narrator', table)).toBe('Wise_Woman')
    expect(voiceOf('echo', table)).toBe(P3_VOICES.echo)
  })

  it.each(['Calm_Woman', 'constructor', '__proto__', 'Alloy'])('is %s where no table names it', (name) => {
    expect(voiceOf(name)).toBe(name)
  })

  it('is the id as it stands where an object gives one', () => {
    expect(voiceOf({ id: 'alloy' }, { alloy: 'Calm_Woman' })).toBe('alloy')
  })
})
