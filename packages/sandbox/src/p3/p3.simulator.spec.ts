import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { Simulator } from '../server/simulator.js'
import { startP3Simulator } from './p3.simulator.js'

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

  it('is one chunk for #oneshot, whatever was declined', async () => {
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
    expect(await (await post('#order')).text()).toMatch(/^\{"base_resp".*"status":2,"audio":"[0-9a-f]+"\},"extra_info"/)
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
  it('is streamed without being repeated unless that was asked for in so many words', async () => {
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
