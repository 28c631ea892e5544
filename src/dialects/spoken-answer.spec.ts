import { describe, expect, it } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { GatewayError } from '../core/gateway-error.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { estimateSpeechUsage } from './speech-response.js'
import { spokenAnswer, type SpokenAudio } from './spoken-answer.js'

interface Speech {
  readonly source: ManualSource
  readonly answer: Promise<UpstreamAnswer>
}

function spoken(more: Partial<SpokenAudio>, streamFormat?: string): Speech {
  const source = new ManualSource()
  const usage = (): ReturnType<typeof estimateSpeechUsage> => estimateSpeechUsage('hello')
  const speech = { source, format: 'mp3', sentAs: 'mp3', usage, characters: () => 5, call: newCall(), ...more } as const
  return { source, answer: spokenAnswer(speech, streamFormat) }
}

function bytesOf(answer: UpstreamAnswer): RecordingSink {
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
