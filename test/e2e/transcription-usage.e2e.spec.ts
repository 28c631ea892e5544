import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, sample, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw, type RawAnswer } from '../support/raw-http.js'
import { fieldPart, filePart } from '../support/upload-server.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

/** The upstream's next answer. */
const answering = (body: string): void => {
  lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
}
const ask = (model: string, file: Buffer): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, upload(form([['model', model]], file)))

const logged = async (answer: RawAnswer): Promise<unknown> =>
  (await lab.gateway.logLine(String(answer.headers['x-request-id'])))['usage']

describe('a class G answer without usage', () => {
  it.each([
    [60, 1000],
    [6, 100],
    [90, 1500],
    [1, 17],
  ])('for %i seconds of audio gets one of %i audio tokens, marked as estimated', async (seconds, audioTokens) => {
    answering('{"text":"Hello there, you.","logprobs":[{"logprob":-0.10}],"seed":12345678901234567890}')
    const answer = await ask('gpt-4o-transcribe', wavOfSeconds(seconds))
    const usage = {
      type: 'tokens',
      total_tokens: audioTokens + 5,
      input_tokens: audioTokens,
      input_token_details: { text_tokens: 0, audio_tokens: audioTokens },
      output_tokens: 5,
      estimated: true,
    }
    // Everything else keeps its spelling.
    const kept = '{"text":"Hello there, you.","logprobs":[{"logprob":-0.10}],"seed":12345678901234567890'
    expect(answer.text).toBe(`${kept},"usage":${JSON.stringify(usage)}}`)
    expect(answer.headers['content-length']).toBe(String(answer.body.length))
    expect(answer.headers['x-gateway-usage']).toBe('estimated')
    expect(await logged(answer)).toEqual({
      units: { total_tokens: audioTokens + 5, input_tokens: audioTokens, output_tokens: 5 },
      estimated: true,
    })
  })

  it('with a usage of null gets one in its place, and so does a diarized one', async () => {
    answering('{"usage":null,"text":"Hi"}')
    const answer = await ask('gpt-4o-mini-transcribe', wavOfSeconds(6))
    expect(answer.text).toMatch(/^\{"usage":\{"type":"tokens",.*\},"text":"Hi"\}$/)
    answering('{"text":"Hi"}')
    expect((await ask('gpt-4o-transcribe-diarize', wavOfSeconds(6))).text).toContain('"audio_tokens":100')
  })

  it.each(['tone.mp3', 'tone.flac', 'tone-opus.ogg', 'tone.m4a', 'tone.webm'])(
    'gets one from the length of %s as well',
    async (name) => {
      answering('{"text":"Hi"}')
      const parts = [filePart(sample(name), name), fieldPart('model', 'gpt-4o-transcribe')]
      const { text } = await sendRaw(lab.gateway.url, upload(parts))
      const { usage } = JSON.parse(text) as { usage: { input_tokens: number } }
      // Half a second and a little, at 1,000 tokens a minute.
      expect(usage.input_tokens).toBeGreaterThanOrEqual(8)
      expect(usage.input_tokens).toBeLessThanOrEqual(10)
    },
  )

  it('is left alone when the file does not tell how long it is', async () => {
    answering('{"text":"Hi"}')
    const parts = [filePart(sample('tone-live.webm'), 'a.webm'), fieldPart('model', 'gpt-4o-transcribe')]
    const answer = await sendRaw(lab.gateway.url, upload(parts))
    expect(answer.text).toBe('{"text":"Hi"}')
    expect(answer.headers).not.toHaveProperty('x-gateway-usage')
  })
})

describe('an answer with usage', () => {
  it.each([
    '{"text":"Hi","usage":{"type":"tokens","total_tokens":0,"input_tokens":0,"output_tokens":0}}',
    '{"text":"Hi","usage":{"type":"tokens","total_tokens":28,"input_tokens":17,"output_tokens":11}}',
  ])('is the truth: %s', async (body) => {
    answering(body)
    const answer = await ask('gpt-4o-transcribe', wavOfSeconds(60))
    expect(answer.text).toBe(body)
    expect(answer.headers).not.toHaveProperty('x-gateway-usage')
    expect(await logged(answer)).toMatchObject({ estimated: false, units: { total_tokens: expect.any(Number) } })
  })
})

describe('a class S answer', () => {
  it('without usage gets none; the length of the audio is logged', async () => {
    answering('{"text":"Hi"}')
    const answer = await ask('whisper-1', wavOfSeconds(6))
    expect(answer.text).toBe('{"text":"Hi"}')
    expect(await logged(answer)).toEqual({ units: { audio_seconds: 6 }, estimated: false })
  })
})
