import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { toFile } from 'openai'
import { sample, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { type RawAnswer, sendRaw } from '../support/raw-http.js'
import { fieldPart, filePart } from '../support/upload-server.js'

const WAV_HEADER_BYTES = 44
const WAV_BYTES_PER_SECOND = 48_000

let lab: LimitedGateway

beforeAll(async () => {
  lab = await startLimitedGateway({
    tokens: { tokensPerMinute: 1000 },
    failing: { tokensPerMinute: 1000 },
    streaming: { tokensPerMinute: 100_000, concurrency: 2 },
    speech: { audioSecondsPerMinute: 10 },
    spoken: { audioSecondsPerMinute: 100 },
    transcription: { audioSecondsPerMinute: 3, tokensPerMinute: 1000 },
    guessed: { audioSecondsPerMinute: 1, tokensPerMinute: 10 },
    never: { tokensPerMinute: 100 },
    parallel: { tokensPerMinute: 5000 },
  })
})
afterAll(() => lab.close())

describe('A limit of tokens', () => {
  const remaining = async (key: string): Promise<number> =>
    (await lab.limits(key)).limits['tokensPerMinute']?.remaining ?? NaN

  it('is reserved by what a request may use and settled by what it has used', async () => {
    const answer = await lab.chat('tokens', 'Hello', { max_tokens: 900 })
    expect(Number(answer.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThanOrEqual(100)
    const { usage } = (await answer.json()) as { usage: { total_tokens: number } }
    await eventually(async () => (await remaining('tokens')) === 1000 - usage.total_tokens)
    const controller = new AbortController()
    const hanging = lab.chat('tokens', '#hang', { max_tokens: 900 }, controller.signal).catch(() => 'aborted')
    await eventually(async () => (await remaining('tokens')) < 100)
    const refused = await lab.chat('tokens', 'Hello', { max_tokens: 900 })
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({
      error: { code: 'rate_limit_exceeded', message: expect.stringContaining('and this request expects to use') },
    })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1)
    const reserved = await remaining('tokens')
    controller.abort()
    expect(await hanging).toBe('aborted')
    // The upstream was at work: what it has used is not known, and stays reserved until the window ends.
    await eventually(() => lab.gateway.logText().includes('"status":499'))
    expect(await remaining('tokens')).toBe(reserved)
  })

  it.each(['#500', '#reset', '#malformed', '#400', '#429', '#html'])(
    'is given back when the upstream fails: %s',
    async (text) => {
      await (await lab.chat('failing', text, { max_tokens: 900 })).text()
      await eventually(async () => (await remaining('failing')) === 1000)
    },
  )

  it('is told apart from one that can never be served, which nobody is to try again', async () => {
    const answer = await lab.chat('never', 'Hello', { max_tokens: 101 })
    expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([
      429,
      'false',
      null,
    ])
    expect(await answer.json()).toMatchObject({
      error: { code: 'request_exceeds_limit', message: expect.stringContaining('it can never be served') },
    })
    expect(answer.headers.get('x-gateway-limit')).toBe('tokensPerMinute; scope=key:never')
  })

  it('has room for as many answers without a maximum at once as may be long', async () => {
    const controller = new AbortController()
    let refusals = 0
    const asked = Array.from({ length: 20 }, async () => {
      const answer = await lab.chat('parallel', '#hang', {}, controller.signal).catch(() => undefined)
      if (answer?.status === 429) refusals++
      return answer?.status
    })
    // A thousand tokens for each answer, and some for its prompt: four fit.
    await eventually(() => refusals === 16).finally(() => {
      controller.abort()
    })
    expect((await Promise.all(asked)).filter((status) => status === undefined)).toHaveLength(4)
  })

  it('pays for a stream what it was told of it', async () => {
    const answer = await lab.chat('streaming', 'Hello #chunks=20', {
      stream: true,
      stream_options: { include_usage: true },
    })
    const total = /"total_tokens": ?(\d+)/.exec(await answer.text())?.[1]
    expect(Number(total)).toBeGreaterThan(20)
    await eventually(async () => (await remaining('streaming')) === 100_000 - Number(total))
  })
})

describe('A limit of audio', () => {
  it('is used by the length of what is to be spoken', async () => {
    const answer = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(90)))
    expect([answer.status, answer.headers.get('x-ratelimit-remaining-audio-seconds')]).toEqual([200, '4'])
    await answer.arrayBuffer()
    const refused = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(90)))
    expect([refused.status, refused.headers.get('x-ratelimit-limit-audio-seconds')]).toEqual([429, '10'])
    const never = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(200)))
    expect([never.status, never.headers.get('x-should-retry')]).toEqual([429, 'false'])
    expect((await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(50)))).status).toBe(200)
  })

  it('is settled by the length of what was spoken, where the audio tells it', async () => {
    const body = speechText('a'.repeat(600), { response_format: 'wav' })
    const answer = await lab.post('spoken', SPEECH_PATH, body)
    expect([answer.status, answer.headers.get('x-ratelimit-remaining-audio-seconds')]).toEqual([200, '60'])
    const seconds = ((await answer.arrayBuffer()).byteLength - WAV_HEADER_BYTES) / WAV_BYTES_PER_SECOND
    expect(Math.abs(seconds - 40)).toBeGreaterThan(2)
    await eventually(async () => {
      const { limits } = await lab.limits('spoken')
      return limits['audioSecondsPerMinute']?.remaining === Math.floor(100 - seconds)
    })
  })

  it('is used by the length of what was heard, and tokens by what the model made of it', async () => {
    const [, make] = OPENAI_CLIENTS[0] as (typeof OPENAI_CLIENTS)[number]
    const client = make(lab.gateway, { apiKey: 'transcription' })
    const file = await toFile(sample('tone.wav'), 'tone.wav')
    const { data, response } = await client.audio.transcriptions
      .create({ model: 'gpt-4o-mini-transcribe', file })
      .withResponse()
    const { usage } = data as { usage?: { total_tokens: number } }
    const left = Number(response.headers.get('x-ratelimit-remaining-audio-seconds'))
    expect(left).toBeLessThan(3)
    await eventually(async () => {
      const { limits } = await lab.limits('transcription')
      return limits['tokensPerMinute']?.remaining === 1000 - (usage?.total_tokens ?? NaN)
    })
    expect((await lab.limits('transcription')).limits['audioSecondsPerMinute']?.remaining).toBe(left)
  })

  it('makes no recording impossible by a guess of its length, but one that tells that it is too long', async () => {
    const send = (file: Buffer, name: string, model: string): Promise<RawAnswer> => {
      const headers = { authorization: 'Bearer guessed' }
      return sendRaw(lab.gateway.url, upload([filePart(file, name), fieldPart('model', model)], undefined, headers))
    }
    // Taken for a second and a half, and for 26 tokens: half as much again as a minute allows.
    const untold = Buffer.concat(Array.from({ length: 4 }, () => sample('tone.mpeg')))
    const body = '{"text":"Hi"}'
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
    const served = await send(untold, 'a.mpeg', 'gpt-4o-mini-transcribe')
    expect([served.status, served.text]).toEqual([200, body])
    expect(served.headers).toMatchObject({
      'x-ratelimit-remaining-audio-seconds': '0',
      'x-ratelimit-remaining-tokens': '0',
    })
    // Nobody has said what it used: another waits for the next minute, which has room for it.
    const waiting = await send(untold, 'a.mpeg', 'whisper-1')
    expect([waiting.status, JSON.parse(waiting.text)]).toMatchObject([429, { error: { code: 'rate_limit_exceeded' } }])
    expect(Number(waiting.headers['retry-after'])).toBeGreaterThan(30)
    expect(waiting.headers).not.toHaveProperty('x-should-retry')
    const never = await send(wavOfSeconds(2), 'a.wav', 'whisper-1')
    expect([never.status, JSON.parse(never.text)]).toMatchObject([429, { error: { code: 'request_exceeds_limit' } }])
    expect(never.headers['x-should-retry']).toBe('false')
  })
})
