import { describe, expect, it } from '@jest/globals'
import { type SpeechFormat, synthesizeSpeech } from '@multi-model-gateway/sandbox/audio/speech-synthesizer.js'
import { decode } from './audio-decoders.js'
import { AudioFault } from './audio-frames.js'
import { eventually } from './eventually.js'
import { startParts } from './gateway-process.js'
import { parseScrape, valueOf } from './prometheus-text.js'

describe('audio decoders', () => {
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
})

const counter = (lines: string): string => `# HELP a_total A.\n# TYPE a_total counter\n${lines}`
const histogram = (lines: string): string => `# HELP h_seconds H.\n# TYPE h_seconds histogram\n${lines}`

const SOUND = [
  'h_seconds_bucket{r="/",le="0.1"} 1',
  'h_seconds_bucket{r="/",le="+Inf"} 2',
  'h_seconds_sum{r="/"} 0.5',
  'h_seconds_count{r="/"} 2',
]

describe('A scrape', () => {
  it('is read with its labels as they were meant', () => {
    const families = parseScrape(
      counter('a_total{x="a\\"b\\\\c\\nd",y="1"} 3\na_total 2e3\n') + histogram(SOUND.join('\n') + '\n'),
    )
    expect(valueOf(families, 'a_total', { y: '1', x: 'a"b\\c\nd' })).toBe(3)
    expect(valueOf(families, 'a_total')).toBe(2000)
    expect(valueOf(families, 'h_seconds_bucket', { r: '/', le: '+Inf' })).toBe(2)
    expect(valueOf(families, 'a_total', { y: '1' })).toBeUndefined()
  })

  it.each([
    ['a line without an end', counter('a_total 1')],
    ['a sample of another family', counter('b_total 1\n')],
    ['a sample before any family', 'a_total 1\n'],
    ['a type without help', '# TYPE a_total counter\na_total 1\n'],
    ['a family twice', counter('a_total 1\n') + counter('a_total{x="1"} 1\n')],
    ['a series twice', counter('a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n')],
    ['a label twice', counter('a_total{x="1",x="2"} 1\n')],
    ['a label without quotes', counter('a_total{x=1} 1\n')],
    ['an unknown escape', counter('a_total{x="\\d"} 1\n')],
    ['no comma between labels', counter('a_total{x="1"y="2"} 1\n')],
    ['a comma too many', counter('a_total{x="1",} 1\n')],
    ['a value that is no number', counter('a_total undefined\n')],
    ['a negative counter', counter('a_total -1\n')],
    ['buckets without an end', histogram(SOUND.filter((line) => !line.includes('Inf')).join('\n') + '\n')],
    ['buckets that shrink', histogram(SOUND.join('\n').replace('} 1', '} 3') + '\n')],
    ['a count beside the buckets', histogram(SOUND.join('\n').replace('count{r="/"} 2', 'count{r="/"} 3') + '\n')],
    ['buckets without a sum', histogram(SOUND.filter((line) => !line.includes('sum')).join('\n') + '\n')],
  ])('is refused with %s', (_what, text) => {
    expect(() => parseScrape(text)).toThrow()
  })
})

interface NamedPart {
  readonly name: string
  close(): Promise<void>
}

/** Notes its name when it is closed. */
const part = (name: string, closed: string[]): NamedPart => ({
  name,
  close: async () => {
    await Promise.resolve()
    closed.push(name)
  },
})

const stuckPart = (name: string): NamedPart => ({
  name,
  close: () => Promise.reject(new Error(`${name} cannot be closed`)),
})

describe('What is started in parts', () => {
  it('runs until it is closed, and then closes its parts, the last one first', async () => {
    const closed: string[] = []
    const whole = await startParts(async (closedAtLast) => {
      const store = closedAtLast(await Promise.resolve(part('store', closed)))
      const server = closedAtLast(await Promise.resolve(part('server', closed)))
      return { names: [store.name, server.name] }
    })
    expect([whole.names, closed]).toEqual([['store', 'server'], []])
    await whole.close()
    expect(closed).toEqual(['server', 'store'])
    await whole.close()
    expect(closed).toHaveLength(2)
  })

  it('closes what was started before a step that fails, and says what failed', async () => {
    const closed: string[] = []
    const started = startParts(async (closedAtLast) => {
      closedAtLast(await Promise.resolve(part('store', closed)))
      closedAtLast(await Promise.resolve(part('server', closed)))
      throw new Error('the balancer is missing')
    })
    await expect(started).rejects.toThrow('the balancer is missing')
    expect(closed).toEqual(['server', 'store'])
  })

  it('closes all others where some cannot be closed, and says what went wrong first', async () => {
    const closed: string[] = []
    const whole = await startParts((closedAtLast) => {
      closedAtLast(part('store', closed))
      closedAtLast(stuckPart('gateway'))
      closedAtLast(part('server', closed))
      closedAtLast(stuckPart('balancer'))
      return Promise.resolve({})
    })
    await expect(whole.close()).rejects.toThrow('balancer cannot be closed')
    expect(closed).toEqual(['server', 'store'])
    await expect(whole.close()).resolves.toBeUndefined()
  })

  it('says why it did not start, also where a part cannot be closed then', async () => {
    const closed: string[] = []
    const started = startParts((closedAtLast) => {
      closedAtLast(part('store', closed))
      closedAtLast(stuckPart('server'))
      return Promise.reject(new Error('the balancer is missing'))
    })
    await expect(started).rejects.toThrow('the balancer is missing')
    expect(closed).toEqual(['store'])
  })
})

describe('A wait that ran out', () => {
  it('says for what, and what was seen meanwhile', async () => {
    const states = ['made', 'sent']
    const waited = eventually(
      () => states.includes('ended'),
      () => Promise.resolve(states),
      1,
    )
    await expect(waited).rejects.toThrow(/ 1 ms: .*states\.includes\('ended'\); seen: \[ 'made', 'sent' \]$/)
  })
})
