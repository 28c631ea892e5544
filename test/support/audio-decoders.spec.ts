import { describe, expect, it } from '@jest/globals'
import { type SpeechFormat, synthesizeSpeech } from '@multi-model-gateway/sandbox/audio/speech-synthesizer.js'
import { decode } from './audio-decoders.js'
import { AudioFault } from './audio-fault.js'

const TYPES: Readonly<Record<SpeechFormat, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  aac: 'audio/aac',
  flac: 'audio/flac',
  opus: 'audio/opus',
  pcm: 'audio/pcm',
}
const FORMATS = Object.keys(TYPES) as SpeechFormat[]
const TEXT = 'A text of forty characters, no more of it.'

const speech = (format: SpeechFormat, text = TEXT): Buffer =>
  Buffer.concat([...synthesizeSpeech(text, { format, speed: 1 })])

describe.each(FORMATS)('%s', (format) => {
  it('decodes to the length that was spoken, and can be heard', async () => {
    const audio = await decode(TYPES[format], speech(format))
    expect(audio.seconds).toBeGreaterThan(TEXT.length * 0.058)
    expect(audio.seconds).toBeLessThan(TEXT.length * 0.062 + 0.05)
    expect(audio).toMatchObject({ sampleRateHz: format === 'opus' ? 48_000 : 24_000, channels: 1, warnings: [] })
    expect(audio.peak).toBeGreaterThan(0.05)
    expect(audio.peak).toBeLessThanOrEqual(1)
  })

  it.each([1, 3, 21])('is refused when its last %i bytes are missing', async (bytes) => {
    await expect(decode(TYPES[format], speech(format).subarray(0, -bytes))).rejects.toThrow(AudioFault)
  })

  it('is refused when it is empty, a page, or noise', async () => {
    const noise = Buffer.from(Array.from({ length: 4097 }, (_, index) => (index * 7919) % 253))
    for (const bytes of [Buffer.alloc(0), Buffer.from('<!doctype html>'), noise])
      await expect(decode(TYPES[format], bytes)).rejects.toThrow(AudioFault)
  })

  it.each(FORMATS.filter((other) => other !== format))('is refused as %s', async (other) => {
    await expect(decode(TYPES[other], speech(format))).rejects.toThrow(AudioFault)
  })
})

it.each(['mp3', 'flac', 'opus', 'aac'] as const)('%s with bytes missing in the middle is refused', async (format) => {
  const bytes = speech(format)
  const torn = Buffer.concat([bytes.subarray(0, 700), bytes.subarray(713)])
  await expect(decode(TYPES[format], torn)).rejects.toThrow(AudioFault)
})

it.each(['flac', 'aac'] as const)('%s whose frames are whole and hold nonsense is refused', async (format) => {
  const bytes = speech(format)
  const bent = Buffer.from(bytes)
  for (let at = 2000; at < 2060; at += 1) bent[at] = 0xa5
  await expect(decode(TYPES[format], bent)).rejects.toThrow(AudioFault)
})

it.each(['wav', 'flac', 'opus'] as const)('two files of %s one after the other are no file', async (format) => {
  await expect(decode(TYPES[format], Buffer.concat([speech(format), speech(format)]))).rejects.toThrow(AudioFault)
})

it('refuses a type it does not know, and a WAV header whose length is not true', async () => {
  await expect(decode('audio/ogg', speech('opus'))).rejects.toThrow('audio/ogg')
  const wav = speech('wav')
  wav.writeUInt32LE(wav.length, 40)
  await expect(decode('audio/wav', wav)).rejects.toThrow('breaks off')
})
