import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, sha1, TRANSLATIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { startP1Gateway, UPSTREAM_KEY, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw, type RawAnswer, type RawRequest } from '../support/raw-http.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const recording = wavOfSeconds(3)
const heard = `The audio has checksum ${sha1(recording).slice(0, 12)}. It lasts 3.00 seconds.`

/** What the upstream itself says to the same form. */
const upstreamSays = (request: RawRequest): Promise<RawAnswer> =>
  sendRaw(lab.simulator.url, { ...request, headers: { ...request.headers, authorization: `Bearer ${UPSTREAM_KEY}` } })

const TEXT = 'text/plain; charset=utf-8'
const JSON_TYPE = 'application/json'
const S = 'whisper-1'

describe('a translation', () => {
  const translated = heard.replace('The audio', 'The translated audio')

  it.each([
    ['json', JSON_TYPE],
    ['text', TEXT],
    ['srt', TEXT],
    ['vtt', TEXT],
    ['verbose_json', JSON_TYPE],
  ])('as %s is, byte for byte, what the upstream says', async (format, contentType) => {
    const request = upload(
      form(
        [
          ['model', S],
          ['response_format', format],
        ],
        recording,
      ),
      TRANSLATIONS,
    )
    const answer = await sendRaw(lab.gateway.url, request)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe(contentType)
    expect(answer.body).toEqual((await upstreamSays(request)).body)
    expect(answer.text).toContain('The translated audio')
  })

  it('uses the class S model when none is named, and tells the upstream so', async () => {
    const answer = await sendRaw(lab.gateway.url, upload(form([], recording), TRANSLATIONS))
    expect(JSON.parse(answer.text)).toMatchObject({ text: translated })
    expect(lab.simulator.lastRequest?.parts?.find(({ name }) => name === 'model')?.value).toBe('whisper-1')
    expect(lab.simulator.lastRequest?.path).toBe(TRANSLATIONS)
    expect(await lab.gateway.logLine(String(answer.headers['x-request-id']))).toMatchObject({ model: 'whisper-1' })
  })

  it('needs the access to that default model', async () => {
    const limited = await startP1Gateway({ keys: [{ id: 'limited', key: 'limited-key', models: ['tts-*'] }] })
    try {
      const headers = { authorization: 'Bearer limited-key' }
      const answer = await sendRaw(limited.gateway.url, upload(form([], recording), TRANSLATIONS, headers))
      expect(answer.status).toBe(403)
      expect(limited.simulator.requests).toEqual([])
    } finally {
      await limited.close()
    }
  })
})
