import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { Simulator } from '../server/simulator-server.js'
import { startP3Simulator } from './p3.simulator.js'

interface BaseResponse {
  status_code: number
  status_msg: string
}

const good = {
  model: 'speech-02-turbo',
  text: 'Hello.',
  voice_setting: { voice_id: 'Wise_Woman' },
}

const newer = { model: 'speech-2.6-hd' }
let simulator: Simulator

beforeAll(async () => {
  simulator = await startP3Simulator({ voices: ['our-clone'] })
})
afterEach(() => {
  simulator.reset()
})
afterAll(async () => {
  await simulator.close()
})

async function judge(body: unknown, type = 'application/json', url = simulator.url): Promise<BaseResponse> {
  const response = await fetch(`${url}/v1/t2a_v2`, {
    method: 'POST',
    headers: { authorization: 'Bearer any', 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  expect(response.status).toBe(200)
  const text = await response.text()
  const json = text.startsWith('data: ') ? (text.split('\n\n').at(-2) ?? '').slice(6) : text
  return (JSON.parse(json) as { base_resp: BaseResponse }).base_resp
}

const voice = (change: object): object => ({ voice_setting: { ...good.voice_setting, ...change } })
const audio = (change: object): object => ({ audio_setting: change })

describe('P3 takes', () => {
  it.each([
    ['the flags', { stream: false, output_format: 'hex', aigc_watermark: true, subtitle_type: 'sentence' }],
    ['stream options', { stream: true, stream_options: { exclude_aggregated_audio: true } }],
    ['the limits of speed, volume and pitch', voice({ speed: 0.5, vol: 0.01, pitch: -12 })],
    ['the other limits', voice({ speed: 2, vol: 10, pitch: 12, latex_read: true, text_normalization: true })],
    ['the older names', voice({ emotion: 'neutral', english_normalization: true })],
    ['the newer emotions on newer models', { ...newer, ...voice({ emotion: 'whisper' }) }],
    ['bitrate and constant rate of streamed mp3', { stream: true, ...audio({ bitrate: 256_000, force_cbr: true }) }],
    ['a pronunciation', { pronunciation_dict: { tone: ['omg/oh my god'] } }],
    ['timbres instead of a voice', { voice_setting: {}, timbre_weights: [{ voice_id: 'Calm_Woman', weight: 1 }] }],
    ['the other spelling', { voice_setting: {}, timber_weights: [{ voice_id: 'Calm_Woman', weight: 100 }] }],
    ['no language', { language_boost: null }],
    ['a language with a comma', { language_boost: 'Chinese,Yue' }],
    ['a changed voice', { voice_modify: { pitch: -100, intensity: 100, timbre: 0, sound_effects: 'robotic' } }],
    ['9,999 characters, counted as code points', { text: `#bytes=1 ${'😀'.repeat(9990)}` }],
    ['pauses between words', { text: 'One<#0.01#>two <#99.99#> three.' }],
    ['joined emoji', { text: '👩‍👩‍👧' }],
    ["the account's own voice", voice({ voice_id: 'our-clone' })],
    ['a -jingpin voice', voice({ voice_id: 'male-qn-qingse-jingpin' })],
  ])('%s', async (_name, change) => {
    expect(await judge({ ...good, ...change })).toEqual({ status_code: 0, status_msg: 'success' })
    expect(simulator.violations).toEqual([])
  })

  it.each([
    ...['English_expressive_narrator', 'male-qn-jingying', 'female-tianmei', 'audiobook_male_1', 'female-shaonv'],
    ...['female-yujie', 'male-qn-qingse', 'male-qn-badao', 'male-qn-daxuesheng', 'female-chengshu', 'Calm_Woman'],
  ])('the voice %s', async (voice_id) => {
    expect((await judge({ ...good, ...voice({ voice_id }) })).status_code).toBe(0)
  })

  it.each([
    ...['speech-2.5-hd-preview', 'speech-2.5-turbo-preview', 'speech-02-hd', 'speech-02-turbo', 'speech-01-hd'],
    ...['speech-01-turbo', 'speech-2.6-turbo', 'speech-2.8-hd'],
  ])('the model %s', async (model) => {
    expect((await judge({ ...good, model })).status_code).toBe(0)
  })

  it.each(['happy', 'sad', 'angry', 'fearful', 'disgusted', 'surprised', 'calm'])('the emotion %s', async (emotion) => {
    expect((await judge({ ...good, ...voice({ emotion }) })).status_code).toBe(0)
  })
})

describe('P3 refuses with 2013', () => {
  it.each([
    ['no model', { model: undefined }, 'model is required'],
    ['an unknown model', { model: 'tts-1' }, 'model tts-1 is unknown'],
    ['a model that is no string', { model: 5 }, 'model must be a string'],
    ['no text', { text: undefined }, 'text is empty'],
    ['an empty text', { text: '' }, 'text is empty'],
    ['a blank text', { text: ' \n' }, 'text is empty'],
    ['10,000 characters', { text: 'x'.repeat(10_000) }, 'text must have fewer than 10000 characters, got 10000'],
    ['a text that is no string', { text: ['x'] }, 'text must be a string'],
    ['a stream that is no boolean', { stream: 1 }, 'stream must be a boolean'],
    ['stream options of another form', { stream_options: true }, 'stream_options must be an object'],
    ['no voice settings', { voice_setting: undefined }, 'voice_setting.voice_id is required'],
    ['no voice', { voice_setting: { speed: 1 } }, 'voice_setting.voice_id is required'],
    ['null for voice settings', { voice_setting: null }, 'voice_setting must be an object'],
    ['a slow speed', voice({ speed: 0.49 }), 'voice_setting.speed must be between 0.5 and 2, got 0.49'],
    ['a fast speed', voice({ speed: 2.01 }), 'voice_setting.speed must be between 0.5 and 2, got 2.01'],
    ['a speed in quotes', voice({ speed: '1' }), 'voice_setting.speed must be a number'],
    ['no volume', voice({ vol: 0 }), 'voice_setting.vol must be greater than 0'],
    ['too much volume', voice({ vol: 10.1 }), 'voice_setting.vol must be between 0 and 10, got 10.1'],
    ['a fractional pitch', voice({ pitch: 1.5 }), 'voice_setting.pitch must be an integer'],
    ['a low pitch', voice({ pitch: -13 }), 'voice_setting.pitch must be between -12 and 12, got -13'],
    ['an unknown emotion', voice({ emotion: 'bored' }), /^voice_setting\.emotion must be one of happy, sad, /],
    [
      'a newer emotion on an older model',
      voice({ emotion: 'fluent' }),
      'voice_setting.emotion fluent is not supported by speech-02-turbo',
    ],
    ['normalization that is no boolean', voice({ text_normalization: 'yes' }), /text_normalization must be a boolean$/],
    ['an odd rate', audio({ sample_rate: 48_000 }), /^audio_setting\.sample_rate must be one of 8000, 16000, 22050, /],
    ['an odd bitrate', audio({ bitrate: 96_000 }), /^audio_setting\.bitrate must be one of 32000, /],
    ['a bitrate of pcm', audio({ format: 'pcm', bitrate: 128_000 }), 'audio_setting.bitrate is for mp3 only'],
    ['force_cbr of a whole file', audio({ force_cbr: true }), 'audio_setting.force_cbr is for streamed mp3 only'],
    ['an unknown format', audio({ format: 'aac' }), 'audio_setting.format must be one of mp3, pcm, flac, wav, opus'],
    ['three channels', audio({ channel: 3 }), 'audio_setting.channel must be one of 1, 2'],
    ['streamed wav', { stream: true, ...audio({ format: 'wav' }) }, 'audio_setting.format wav needs stream=false'],
    ['a streamed link', { stream: true, output_format: 'url' }, 'output_format url needs stream=false'],
    ['another output format', { output_format: 'mp3' }, 'output_format must be one of hex, url'],
    ['streamed subtitles', { stream: true, subtitle_enable: true }, 'subtitle_enable needs stream=false'],
    ['an unknown subtitle type', { subtitle_type: 'line' }, /^subtitle_type must be one of sentence, word, /],
    ['an unknown language', { language_boost: 'Klingon' }, /^language_boost must be one of Chinese, Chinese,Yue, /],
    ['a pronunciation without a slash', { pronunciation_dict: { tone: ['omg'] } }, /tone\[0\] must look like/],
    ['a pronunciation that is no list', { pronunciation_dict: { tone: 'a/b' } }, /tone must be an array$/],
    ['five timbres', { timbre_weights: new Array(5).fill({ voice_id: 'x', weight: 1 }) }, /at most 4 entries$/],
    [
      'a heavy timbre',
      { timbre_weights: [{ voice_id: 'x', weight: 101 }] },
      /weight must be between 1 and 100, got 101/,
    ],
    ['a timbre without weight', { timbre_weights: [{ voice_id: 'x' }] }, 'timbre_weights[0].weight is required'],
    ['a strong change', { voice_modify: { timbre: 101 } }, /^voice_modify\.timbre must be between -100 and 100/],
    ['an unknown effect', { voice_modify: { sound_effects: 'cave' } }, /^voice_modify\.sound_effects must be one of/],
    ['a watermark that is no boolean', { aigc_watermark: 0 }, 'aigc_watermark must be a boolean'],
    ['a pause that is too long', { text: 'a<#100.00#>b' }, /^text has a pause <#100\.00#> outside/],
    ['a pause of nothing', { text: 'a<#0.00#>b' }, /^text has a pause <#0\.00#> outside/],
    ['a pause that is no number', { text: 'a<#x#>b' }, /^text has a pause <#x#> outside/],
    ['two pauses in a row', { text: 'a<#1.00#> <#1.00#>b' }, 'text has a pause that is not between speakable text'],
    ['a pause at the end', { text: 'a<#1.00#>.' }, 'text has a pause that is not between speakable text'],
  ] as [string, object, string | RegExp][])('%s', async (_name, change, message) => {
    const { status_code, status_msg } = await judge({ ...good, ...change })
    expect(status_code).toBe(2013)
    expect(status_msg).toMatch(/^invalid params, /)
    const detail = status_msg.slice('invalid params, '.length)
    if (typeof message === 'string') expect(detail).toBe(message)
    else expect(detail).toMatch(message)
    expect(simulator.violations).toEqual([])
  })

  it.each([
    ['metadata', { metadata: {} }],
    ['voice_setting.style', voice({ style: 'x' })],
    ['audio_setting.encoding', audio({ encoding: 'mp3' })],
    ['stream_options.include_usage', { stream: true, stream_options: { include_usage: true } }],
    ['timbre_weights[0].id', { timbre_weights: [{ voice_id: 'x', weight: 1, id: 1 }] }],
  ])('and records the unknown field %s', async (field, change) => {
    const refusal = await judge({ ...good, ...change })
    expect(refusal).toEqual({ status_code: 2013, status_msg: `invalid params, unknown field ${field}` })
    expect(simulator.violations).toEqual([`unknown field: ${field}`])
  })

  it('a body that is no JSON object, or another content type', async () => {
    const broken = { status_code: 2013, status_msg: 'invalid params, the body is not a JSON object' }
    expect(await judge('{"model":')).toEqual(broken)
    expect(await judge([good])).toEqual(broken)
    expect(await judge(good, 'text/plain')).toMatchObject({ status_code: 2013 })
    expect(await judge(good, 'application/json; charset=utf-8')).toMatchObject({ status_code: 0 })
  })
})

describe('P3 refuses with another code', () => {
  it('2054 an unknown voice, alone or among timbres', async () => {
    const refusal = { status_code: 2054, status_msg: 'voice id not exist, voice_id: alloy' }
    expect(await judge({ ...good, ...voice({ voice_id: 'alloy' }) })).toEqual(refusal)
    expect(await judge({ ...good, timbre_weights: [{ voice_id: 'alloy', weight: 1 }] })).toEqual(refusal)
  })

  it('1042 a text of which more than a tenth is invisible', async () => {
    expect(await judge({ ...good, text: 'nine char\u0007\u200b' })).toMatchObject({ status_code: 1042 })
    expect(await judge({ ...good, text: 'nine char\u200b' })).toMatchObject({ status_code: 0 })
  })
})

describe('a simulator of other strictness', () => {
  it('takes any output format for hex', async () => {
    const lenient = await startP3Simulator({ lenientOutputFormat: true })
    expect(await judge({ ...good, output_format: 'mp3' }, undefined, lenient.url)).toMatchObject({ status_code: 0 })
    await lenient.close()
  })

  it('knows fewer formats', async () => {
    const older = await startP3Simulator({ formats: ['mp3', 'pcm', 'flac', 'wav'] })
    const body = { ...good, audio_setting: { format: 'opus' } }
    expect(await judge(body, undefined, older.url)).toMatchObject({ status_code: 2013 })
    await older.close()
  })
})

const STREAM = { stream: true }
/** Section 3 of the notes. */
const CODES = [
  ...[1000, 1001, 1002, 1004, 1008, 1013, 1024, 1026, 1027, 1033, 1039, 1041, 1042, 1043, 1044],
  ...[2013, 2037, 2038, 2039, 2042, 2045, 2048, 2049, 2054, 2056, 20132],
]

function post(text: string, change: object = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${simulator.url}/v1/t2a_v2`, {
    method: 'POST',
    headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'speech-02-hd', text, voice_setting: { voice_id: 'Calm_Woman' }, ...change }),
    ...(signal === undefined ? {} : { signal }),
  })
}

/** What arrives until the stream ends or breaks, and which of the two. */
async function readAll(response: Response): Promise<{ text: string; broken: boolean }> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes as Uint8Array, { stream: true })
    return { text, broken: false }
  } catch {
    return { text, broken: true }
  }
}

const refusal = (code: number): object => ({
  data: null,
  trace_id: expect.any(String),
  base_resp: { status_code: code, status_msg: expect.stringMatching(/\w/) },
})

describe('a refusal on wish', () => {
  it.each(CODES)('#%i is HTTP 200 and JSON, streamed or not', async (code) => {
    for (const change of [STREAM, {}]) {
      const response = await post(`#${code} please`, change)
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
      expect(await response.json()).toEqual(refusal(code))
    }
  })

  it.each([
    ['#jsonerr', 1000],
    ['#jsonerr=1026', 1026],
  ])('%s is JSON although events were asked for', async (text, code) => {
    const response = await post(text, STREAM)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.json()).toEqual(refusal(code))
  })

  it('#errfirst is an event stream whose first chunk refuses', async () => {
    const response = await post('#errfirst=1002', STREAM)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const { text } = await readAll(response)
    expect(text).toMatch(/^data: \{[^\n]*\}\n\n$/)
    expect(JSON.parse(text.slice(6))).toEqual(refusal(1002))
  })

  it('#errmid is an event stream that refuses after two pieces, and in JSON the refusal alone', async () => {
    const { text, broken } = await readAll(await post('#errmid=1027', STREAM))
    expect(broken).toBe(false)
    const frames = text.split('\n\n')
    expect(frames).toHaveLength(4)
    for (const frame of frames.slice(0, 2)) expect(frame).toMatch(/^data: \{"data":\{"audio":"\w+","status":1/)
    expect(JSON.parse(frames[2]?.slice(6) ?? '')).toEqual(refusal(1027))
    expect(await (await post('#errmid')).json()).toEqual(refusal(1000))
  })
})

describe('a failure of the host on wish', () => {
  it.each([500, 503, 529])('#%i is that status with HTML', async (status) => {
    const response = await post(`#${status}`, STREAM)
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'text/html'])
    expect(await response.text()).toMatch(/^<html>/)
  })

  it('#429 is that status with retry-after', async () => {
    const response = await post('#429')
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '2'])
    expect(await response.json()).toEqual(refusal(1002))
  })

  it.each([
    ['#400', 400, 2013],
    ['#401', 401, 1004],
    ['#402', 402, 1008],
    ['#quota', 200, 1008],
  ])('%s is %i with %i', async (text, status, code) => {
    const response = await post(text)
    expect(response.status).toBe(status)
    expect(await response.json()).toEqual(refusal(code))
  })
})

describe('a broken answer on wish', () => {
  it('#cut: events end well but without the last chunk', async () => {
    const { text, broken } = await readAll(await post('#cut', STREAM))
    expect(broken).toBe(false)
    expect(text).toMatch(/^(data: \{"data":\{"audio":"\w+","status":1[^\n]*\}\n\n)+$/)
  })

  it('#cut: JSON is destroyed midway', async () => {
    const { text, broken } = await readAll(await post('#cut'))
    expect(broken).toBe(true)
    expect(text).toMatch(/^\{"data":\{"audio":"[0-9a-f]+$/)
  })

  it('#reset: events are destroyed midway', async () => {
    const { text, broken } = await readAll(await post('#reset', STREAM))
    expect(broken).toBe(true)
    expect(text).toMatch(/^data: \{/)
  })

  it('#reset: JSON is never begun', async () => {
    await expect(post('#reset')).rejects.toThrow('fetch failed')
  })

  it.each([STREAM, {}])('#stall: some of it, then silence: %j', async (change) => {
    const stop = new AbortController()
    const response = await post('#stall', change, stop.signal)
    const reader = response.body?.getReader()
    const first = (await reader?.read())?.value as Uint8Array | undefined
    expect(first?.length).toBeGreaterThan(100)
    expect(simulator.activeRequests).toBe(1)
    const aborted = simulator.nextAbort()
    stop.abort()
    await aborted
  })

  it('#hang: the request is read and nothing comes', async () => {
    const stop = new AbortController()
    const received = simulator.nextRequest()
    const failing = expect(post('#hang', {}, stop.signal)).rejects.toThrow('aborted')
    expect((await received).answeredStatus).toBeUndefined()
    const aborted = simulator.nextAbort()
    stop.abort()
    await failing
    expect((await aborted).answeredStatus).toBeUndefined()
  })

  it.each([
    ['#html', 'text/html; charset=utf-8', /^<!doctype html>/],
    ['#malformed', 'application/json', /^\{[^}]*$/],
    ['#empty', 'application/json', /^$/],
  ])('%s is %s of no use', async (text, type, body) => {
    const response = await post(text, STREAM)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    expect(await response.text()).toMatch(body)
  })

  it('#json: the whole audio as JSON although events were asked for', async () => {
    const response = await post('#json', STREAM)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.json()).toMatchObject({
      data: { audio: expect.stringMatching(/^[0-9a-f]+$/), status: 2 },
      base_resp: { status_code: 0 },
    })
  })

  it('#slow: the whole answer, piece by piece', async () => {
    const started = performance.now()
    const { text } = await readAll(await post('#slow', STREAM))
    expect(performance.now() - started).toBeGreaterThan(100)
    expect(text).toMatch(/"status":2/)
  })

  it('stands wherever a queued fault says so', async () => {
    simulator.queueFault('errorframe')
    expect(await (await post('hello')).json()).toEqual(refusal(1000))
    simulator.queueFault('503')
    expect((await post('hello')).status).toBe(503)
  })
})

describe('a relay that talks too much', () => {
  it('is recorded', async () => {
    await fetch(`${simulator.url}/v1/t2a_v2`, {
      method: 'POST',
      headers: { authorization: 'Bearer any', 'x-forwarded-for': '10.0.0.1', 'x-api-key': 'k' },
      body: '{}',
    })
    expect(simulator.violations).toEqual(['forwarded header: x-forwarded-for', 'forwarded header: x-api-key'])
  })
})
