import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { JsonObject } from '@multi-model-gateway/sandbox/server/json-value.js'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import {
  P2_ACCESS_TOKEN,
  P2_APP_ID,
  P2_UPSTREAM_KEY,
  type P2Gateway,
  p2Text,
  startP2Gateway,
} from '../support/p2-gateway.js'
import { errorOf, type RawAnswer, sendRaw } from '../support/raw-http.js'

const OWN_VOICE = 'zh_male_wenrouxiaoge_mars_bigtts'

let lab: P2Gateway
let callers: P2Gateway

beforeAll(async () => {
  const options = { voices: { alloy: OWN_VOICE, house: 'S_house' }, speedRange: { minimum: 0.9, maximum: 1.5 } }
  lab = await startP2Gateway({ channel: { options } })
  callers = await startP2Gateway({ channel: { credentials: 'caller' } })
})
beforeEach(() => {
  for (const { simulator } of [lab, callers]) simulator.reset()
})
afterAll(() => Promise.all([lab.close(), callers.close()]))

const speak = (more: object, input = 'Hello there.', { gateway } = lab): Promise<RawAnswer> =>
  sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(input, more) })

/** The section of the one request that the upstream has received. */
function sent(section: string): JsonObject {
  const [request, ...more] = lab.simulator.sessions.flatMap(({ decoded }) => decoded)
  expect(more).toEqual([])
  return request?.[section] as JsonObject
}

describe('the voice of a speech at P2', () => {
  it.each([
    ['echo', 'zh_male_wenhao_mars_bigtts'],
    ['fable', 'zh_female_tianmei_mars_bigtts'],
    ['onyx', 'zh_male_zhibei_mars_bigtts'],
    ['nova', 'zh_female_shuangkuaisisi_mars_bigtts'],
    ['shimmer', 'zh_female_cancan_mars_bigtts'],
    ['alloy', OWN_VOICE],
    ['zh_male_yangguangqingnian_moon_bigtts', 'zh_male_yangguangqingnian_moon_bigtts'],
  ])('%s is %s, as the table and then the channel say', async (voice, preset) => {
    expect((await speak({ voice })).status).toBe(200)
    expect(sent('audio')['voice_type']).toBe(preset)
  })

  it('given by its id is sent as it is', async () => {
    expect((await speak({ voice: { id: 'zh_female_cancan_mars_bigtts' } })).status).toBe(200)
    expect(sent('audio')['voice_type']).toBe('zh_female_cancan_mars_bigtts')
  })

  it.each(['nobody', 'constructor', '__proto__'])('%j, which the upstream does not know, is refused', async (voice) => {
    const answer = await speak({ voice })
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ param: 'voice', code: 'voice_not_found', message: 'voice type not exist' })
    expect(sent('audio')['voice_type']).toBe(voice)
  })
})

describe('the speed of a speech at P2', () => {
  it.each([
    [undefined, 1],
    [1.2, 1.2],
    [0.25, 0.9],
    [4, 1.5],
  ])('%s is %s within the range of the channel', async (speed, ratio) => {
    expect((await speak({ speed })).status).toBe(200)
    expect(sent('audio')['speed_ratio']).toBe(ratio)
  })

  it.each([
    [1.1, 1.1],
    [0.1, 0.9],
    [2, 1.5],
  ])('%s of the metadata, which comes first, is %s within the same range', async (speedRatio, ratio) => {
    expect((await speak({ speed: 1.3, metadata: { audio: { speed_ratio: speedRatio } } })).status).toBe(200)
    expect(sent('audio')['speed_ratio']).toBe(ratio)
  })
})

describe('the metadata of a speech at P2', () => {
  it('lies over the request', async () => {
    const metadata = {
      audio: { loudness_ratio: 1.5, enable_emotion: true, emotion: 'happy', speed_ratio: 1.1 },
      request: { silence_duration: 200, enable_trailing_silence_audio: true, extra_param: { aigc_watermark: true } },
    }
    expect((await speak({ metadata })).status).toBe(200)
    expect(sent('audio')).toMatchObject(metadata.audio)
    expect(sent('request')).toMatchObject({ silence_duration: 200, extra_param: '{"aigc_watermark":true}' })
    expect(lab.simulator.violations).toEqual([])
  })

  it.each([
    ['metadata.app', { app: { appid: 'mine' } }],
    ['metadata.user', { user: { uid: 'mine' } }],
    ['metadata.audio.encoding', { audio: { encoding: 'wav' } }],
    ['metadata.audio.voice_type', { audio: { voice_type: 'mine' } }],
    ['metadata.request.text', { request: { text: 'mine' } }],
    ['metadata.request.reqid', { request: { reqid: 'mine' } }],
    ['metadata.request.operation', { request: { operation: 'query' } }],
    ['metadata.request.model', { request: { model: 'mine' } }],
    ['metadata.audio.loudness_ratio', { audio: { loudness_ratio: 9 } }],
  ])('may not hold %s', async (param, metadata) => {
    const answer = await speak({ metadata })
    expect(answer.status).toBe(400)
    expect(errorOf(answer).param).toBe(param)
    expect(lab.simulator.sessions).toEqual([])
  })

  it('makes marked-up text one piece, which is refused when it is too long for that', async () => {
    const metadata = { request: { text_type: 'ssml' } }
    expect((await speak({ metadata }, '<speak>Hello there.</speak>')).status).toBe(200)
    expect(sent('request')).toMatchObject({ text: '<speak>Hello there.</speak>', text_type: 'ssml' })
    const answer = await speak({ metadata }, `<speak>${'Hello there. '.repeat(100)}</speak>`)
    expect([answer.status, errorOf(answer).param]).toEqual([400, 'input'])
    expect(lab.simulator.sessions).toHaveLength(1)
  })
})

describe('the text of a speech at P2', () => {
  it('that says nothing is judged by the upstream', async () => {
    const answer = await speak({}, '?!')
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ param: 'input', message: 'illegal input text!' })
  })

  it('that says nothing for a while is spoken without that part', async () => {
    expect((await speak({}, `Hello.${' \n.'.repeat(700)} Goodbye.`)).status).toBe(200)
    const texts = lab.simulator.sessions.flatMap(({ decoded }) => decoded.map(({ request }) => request as JsonObject))
    for (const { text } of texts) expect(text).toMatch(/[a-z]/i)
  })

  it('comes without style instructions, which no model of P2 knows', async () => {
    expect((await speak({ instructions: 'Whisper.' })).status).toBe(200)
    expect(JSON.stringify(lab.simulator.lastSession?.decoded)).not.toContain('Whisper')
  })
})

describe('a caller with a pair of their own', () => {
  const speakAs = (bearer: string): Promise<RawAnswer> =>
    sendRaw(callers.gateway.url, {
      path: SPEECH_PATH,
      body: p2Text('Hello there.'),
      headers: { authorization: `Bearer ${bearer}` },
    })

  it('is served with it', async () => {
    expect((await speakAs(P2_UPSTREAM_KEY)).status).toBe(200)
    expect(callers.simulator.lastSession?.decoded).toMatchObject([{ app: { appid: P2_APP_ID } }])
    expect(callers.simulator.lastSession?.handshake.headers['authorization']).toBe(`Bearer;${P2_ACCESS_TOKEN}`)
  })

  it.each(['one-part', 'a|b|c', '|b', 'a|'])(
    'that is malformed (%s) is refused with 401 before anything is sent',
    async (bearer) => {
      const answer = await speakAs(bearer)
      expect(answer.status).toBe(401)
      expect(errorOf(answer)).toMatchObject({ type: 'authentication_error', code: 'invalid_api_key' })
      expect(callers.simulator.sessions).toEqual([])
    },
  )

  it.each([
    ['token', `${P2_APP_ID}|stranger`],
    ['app', `stranger|${P2_ACCESS_TOKEN}`],
  ])('whose %s the upstream does not accept is refused with 401, too', async (_name, bearer) => {
    const answer = await speakAs(bearer)
    expect(answer.status).toBe(401)
    expect(errorOf(answer)).toMatchObject({ type: 'authentication_error', code: 'invalid_api_key' })
    expect(callers.simulator.sessions).toHaveLength(1)
  })
})
