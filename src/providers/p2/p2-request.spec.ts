import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../../test/support/arbitraries.js'
import { ERROR_KINDS, type ErrorKind, GatewayError } from '../../core/errors.js'
import type { SentCredentials } from '../../dialects/openai-wire.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { BytesSource } from '../../upstream/websocket-client.js'
import { handshakeError, parseP2Error } from './p2-wire.js'
import { p2Request, type P2RequestParts, parseP2Key, readP2Metadata } from './p2-request.js'

const printable = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
})
const part = printable.filter((text) => !text.includes('|'))

describe('parseP2Key', () => {
  it('parts any two printable texts at the bar', () => {
    fc.assert(
      fc.property(part, part, (appId, accessToken) => {
        expect(parseP2Key(`${appId}|${accessToken}`)).toEqual({ appId, accessToken })
      }),
    )
  })

  it('accepts nothing but two non-empty printable parts, whatever comes', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.oneof(fc.constantFrom('|', 'a', ' ', '\n', 'ä'), fc.string({ maxLength: 1 })) }),
        (key) => {
          const parts = key.split('|')
          const isPair = parts.length === 2 && parts.every((text) => /^[\x21-\x7e]+$/.test(text))
          if (isPair) expect(parseP2Key(key)).toEqual({ appId: parts[0], accessToken: parts[1] })
          else expect(() => parseP2Key(key)).toThrow(GatewayError)
        },
      ),
      { numRuns: 1000 },
    )
  })

  it.each(['', 'a', 'a|', '|a', '|', 'a|b|c', 'a||b', ' a|b', 'a|b ', 'a|b\n', 'ä|b'])(
    'refuses %j as malformed',
    (key) => {
      expect(() => parseP2Key(key)).toThrow(expect.objectContaining({ kind: 'key_malformed' }))
    },
  )
})

const AUDIO = {
  rate: 16000,
  bitrate: 64,
  speed_ratio: 1.2,
  loudness_ratio: 0.5,
  emotion: 'happy',
  enable_emotion: true,
  emotion_scale: 5,
  explicit_language: 'pt-br',
  context_language: 'es',
}
const REQUEST = {
  text_type: 'ssml',
  silence_duration: 30_000,
  enable_trailing_silence_audio: true,
  with_timestamp: 1,
}
const EXTRA = {
  disable_markdown_filter: true,
  mute_cut_threshold: '400',
  unsupported_char_ratio_thresh: 1,
  cache_config: { text_type: 1, use_cache: true },
}
const NOWHERE: readonly (readonly [string, string])[] = [
  ['app', 'appid'],
  ['app', 'token'],
  ['app', 'cluster'],
  ['user', 'uid'],
  ['audio', 'encoding'],
  ['audio', 'voice_type'],
  ['audio', 'pitch_ratio'],
  ['request', 'reqid'],
  ['request', 'text'],
  ['request', 'operation'],
  ['request', 'model'],
  ['request', 'frontend'],
]

function refusal(metadata: Record<string, unknown>, terms?: { pcm: boolean }): GatewayError {
  try {
    readP2Metadata(metadata, terms)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('the metadata of P2', () => {
  it.each([undefined, null, {}, { audio: null }, { audio: {}, request: { text_type: null } }])(
    'is an empty overlay for %j',
    (metadata) => {
      expect(readP2Metadata(metadata)).toEqual({ audio: {}, request: {} })
    },
  )

  it('may hold all that the upstream takes from a caller', () => {
    expect(readP2Metadata({ audio: AUDIO, request: REQUEST })).toEqual({ audio: AUDIO, request: REQUEST })
  })

  it.each([
    ['an object', EXTRA],
    ['JSON text', JSON.stringify(EXTRA)],
  ])('hands extra parameters on as JSON text when they come as %s', (_, extra) => {
    const { request } = readP2Metadata({ request: { extra_param: extra } })
    expect(JSON.parse(String(request['extra_param']))).toEqual(EXTRA)
  })

  it.each(NOWHERE)('refuses %s.%s, whatever its value', (group, name) => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: codePoint }), (value) => {
        const { kind, details } = refusal({ [group]: { [name]: value } })
        const isKnownGroup = group === 'audio' || group === 'request'
        expect({ kind, ...details }).toEqual({
          kind: 'invalid_request',
          param: isKnownGroup ? `metadata.${group}.${name}` : `metadata.${group}`,
          code: 'unknown_parameter',
        })
      }),
      { numRuns: 20 },
    )
  })

  it.each([
    ['audio.rate', 44100],
    ['audio.rate', '16000'],
    ['audio.bitrate', 0],
    ['audio.bitrate', 64.5],
    ['audio.speed_ratio', 0.05],
    ['audio.speed_ratio', 2.1],
    ['audio.loudness_ratio', 0.4],
    ['audio.loudness_ratio', 2.1],
    ['audio.emotion', ''],
    ['audio.emotion', 7],
    ['audio.emotion', 'x'.repeat(65)],
    ['audio.enable_emotion', 'true'],
    ['audio.emotion_scale', 0],
    ['audio.emotion_scale', 5.5],
    ['audio.explicit_language', 'xx'],
    ['audio.context_language', 'en'],
    ['request.text_type', 'html'],
    ['request.silence_duration', -1],
    ['request.silence_duration', 30_001],
    ['request.enable_trailing_silence_audio', 1],
    ['request.with_timestamp', true],
    ['request.with_timestamp', 2],
    ['request.extra_param', 'not JSON'],
    ['request.extra_param', '[]'],
    ['request.extra_param', 7],
    ['request.extra_param.other', 7],
    ['request.extra_param.aigc_watermark', 'yes'],
    ['request.extra_param.unsupported_char_ratio_thresh', 1.1],
    ['request.extra_param.cache_config.text_type', 2],
    ['request.extra_param.cache_config.key', 'x'],
  ])('refuses %s = %j and names it', (path, value) => {
    const metadata = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)
    const { kind, message, details } = refusal(metadata as Record<string, unknown>)
    expect(kind).toBe('invalid_request')
    expect(details.param).toBe(`metadata.${path}`)
    expect(message).toContain(`metadata.${path}`)
  })

  it('names an unknown parameter within the JSON text of extra parameters', () => {
    const { details } = refusal({ request: { extra_param: '{"__proto__":{"text":"other"}}' } })
    expect(details).toEqual({ param: 'metadata.request.extra_param.__proto__', code: 'unknown_parameter' })
  })

  it('takes no rate but 24 kHz for pcm and wav', () => {
    expect(readP2Metadata({ audio: { rate: 24000 } }, { pcm: true }).audio).toEqual({ rate: 24000 })
    for (const rate of [8000, 16000]) {
      expect(refusal({ audio: { rate } }, { pcm: true }).details.param).toBe('metadata.audio.rate')
      expect(readP2Metadata({ audio: { rate } }, { pcm: false }).audio).toEqual({ rate })
    }
  })

  it('is refused or read, whatever it holds, and read it names nothing else', () => {
    const anything = fc.jsonValue({ stringUnit: codePoint })
    const near = fc.record(
      {
        audio: fc.record({ rate: anything, emotion: anything, bitrate: fc.nat(400) }, { requiredKeys: [] }),
        request: fc.record({ extra_param: anything, text_type: anything }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(near, fc.dictionary(fc.string(), anything)), (metadata) => {
        try {
          const { audio, request } = readP2Metadata(metadata)
          for (const name of Object.keys(audio)) expect(Object.keys(AUDIO)).toContain(name)
          for (const name of Object.keys(request)) expect([...Object.keys(REQUEST), 'extra_param']).toContain(name)
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error
          expect(error.message.length).toBeLessThan(512)
        }
      }),
      { numRuns: 1000 },
    )
  })
})

const PARTS: P2RequestParts = {
  appId: '1234567890',
  accessToken: 'x',
  cluster: 'volcano_tts',
  userId: 'gw-7f3a',
  voiceType: 'zh_female_cancan_mars_bigtts',
  encoding: 'mp3',
  speedRatio: 1,
  reqid: '0b0f7c1e-6a55-4e7e-9d0a-2f3b1c9f6a10',
  text: 'Ni hao.',
  overlay: { audio: {}, request: {} },
}

interface Sent {
  readonly app: unknown
  readonly user: unknown
  readonly audio: Readonly<Record<string, unknown>>
  readonly request: Readonly<Record<string, unknown>>
}
const sent = (parts: Partial<P2RequestParts> = {}): Sent =>
  JSON.parse(p2Request({ ...PARTS, ...parts }).toString('utf8')) as Sent

describe('the request of P2', () => {
  it('is the example of the protocol', () => {
    expect(sent()).toEqual({
      app: { appid: '1234567890', token: 'x', cluster: 'volcano_tts' },
      user: { uid: 'gw-7f3a' },
      audio: { voice_type: 'zh_female_cancan_mars_bigtts', encoding: 'mp3', rate: 24000, speed_ratio: 1 },
      request: { reqid: '0b0f7c1e-6a55-4e7e-9d0a-2f3b1c9f6a10', text: 'Ni hao.', operation: 'submit' },
    })
  })

  it('names a model where one is given', () => {
    expect(sent({ model: 'seed-tts-1.1' }).request['model']).toBe('seed-tts-1.1')
  })

  it('has the rate of the metadata before its own, and the speed that was made of both', () => {
    const overlay = readP2Metadata({ audio: { rate: 8000, speed_ratio: 0.5, emotion: 'sad' } })
    expect(sent({ speedRatio: 0.8, overlay }).audio).toMatchObject({ rate: 8000, speed_ratio: 0.8, emotion: 'sad' })
    expect(sent({ speedRatio: 2 }).audio).toMatchObject({ rate: 24000, speed_ratio: 2 })
  })

  it('has extra parameters as text', () => {
    const overlay = readP2Metadata({ request: { extra_param: { aigc_watermark: true } } })
    expect(sent({ overlay }).request['extra_param']).toBe('{"aigc_watermark":true}')
  })

  it('keeps its credentials, voice, text and format whatever the overlay holds', () => {
    const overlay = {
      audio: { voice_type: 'other', encoding: 'wav' },
      request: { reqid: 'other', text: 'other', operation: 'query', model: 'other' },
    }
    expect(sent({ overlay })).toEqual(sent())
  })

  it('carries any text as UTF-8, a lone surrogate as the replacement character', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.oneof(fc.string({ unit: codePoint }), fc.constantFrom('\ud83d', '\ude00')) }),
        (text) => {
          expect(sent({ text }).request['text']).toBe(Buffer.from(text).toString('utf8'))
        },
      ),
    )
  })
})

const OURS: SentCredentials = { credentials: '1234567890|canary-token', callersKey: false }
const CALLERS: SentCredentials = { ...OURS, callersKey: true }

const GRANT = 'authenticate request: load grant: requested grant not found'
const ACCESS = 'extract request resource id: get resource id: access denied'
const LIFETIME = 'quota exceeded for types: text_words_lifetime'
const CONCURRENCY = 'quota exceeded for types: concurrency'

const CHANNELS = { phase: 'answered', channelError: true }
const causeOf = (error: GatewayError): string => String(error.details.cause)

describe('An error frame', () => {
  it.each<[number, ErrorKind]>([
    [3005, 'upstream_failed'],
    [3006, 'upstream_failed'],
    [3030, 'upstream_timeout'],
    [3031, 'upstream_failed'],
    [3032, 'upstream_timeout'],
    [3040, 'upstream_failed'],
    [3000, 'upstream_failed'],
    [4711, 'upstream_failed'],
  ])('%d is the upstream\u2019s failure, worth another channel and another time', (code, kind) => {
    for (const sent of [OURS, CALLERS]) {
      const error = parseP2Error(code, 'words of the upstream', sent)
      expect(error).toMatchObject({ kind, details: { attempt: CHANNELS, retryable: true } })
      expect(error.message).not.toContain('words')
      expect(causeOf(error)).toContain(`P2 answered ${code}: words of the upstream`)
    }
  })

  it.each<[number, string | undefined, string | undefined]>([
    [3001, undefined, undefined],
    [3010, 'input', 'string_above_max_length'],
    [3011, 'input', 'invalid_value'],
    [3050, 'voice', 'voice_not_found'],
  ])('%d is the caller\u2019s fault, in the upstream\u2019s words', (code, param, errorCode) => {
    const error = parseP2Error(code, 'words of the upstream', OURS)
    expect(error).toMatchObject({ kind: 'invalid_request', message: 'words of the upstream' })
    expect(error.details).toMatchObject({ attempt: { phase: 'answered' } })
    expect([error.details.param, error.details.code]).toEqual([param, errorCode])
    expect(parseP2Error(code, ' ', OURS).message).toMatch(/upstream/)
  })

  it('3003 is a limit: the channel\u2019s with its own key, the caller\u2019s with theirs', () => {
    const busy = { kind: 'rate_limited', details: { retryAfterSeconds: 1, attempt: CHANNELS } }
    expect(parseP2Error(3003, 'too many', OURS)).toMatchObject(busy)
    expect(parseP2Error(3001, CONCURRENCY, OURS)).toMatchObject(busy)
    expect(parseP2Error(3003, 'too many', CALLERS).details.attempt).toEqual({ phase: 'answered' })
    expect(parseP2Error(3001, CONCURRENCY, CALLERS).details.attempt).toEqual({ phase: 'answered' })
    expect(causeOf(parseP2Error(3003, CONCURRENCY, OURS))).toContain('more syntheses at a time')
  })
})

describe('Words about the account', () => {
  it.each([GRANT, ACCESS, LIFETIME, 'access denied', GRANT.toUpperCase()])(
    '%j are the channel\u2019s fault, whatever the code, and no caller reads them',
    (words) => {
      for (const code of [3001, 3003, 3031, 4711]) {
        const error = parseP2Error(code, words, OURS)
        expect(error).toMatchObject({ kind: 'upstream_failed', details: { attempt: CHANNELS, retryable: false } })
        expect(error.message).toBe('The upstream does not serve this gateway at the moment.')
        expect(causeOf(error)).toContain(words)
      }
    },
  )

  it.each<[string, ErrorKind, string]>([
    [GRANT, 'unauthorized', 'invalid_api_key'],
    [ACCESS, 'forbidden_model', 'model_not_allowed'],
    [LIFETIME, 'rate_limited', 'insufficient_quota'],
  ])('%j are the caller\u2019s business when the key is theirs', (words, kind, code) => {
    const error = parseP2Error(3001, words, CALLERS)
    expect(error.kind).toBe(kind)
    expect(error.details.code ?? ERROR_KINDS[error.kind].audio.code).toBe(code)
    expect(error.details.attempt).toEqual({ phase: 'answered' })
  })

  it('that only repeat what the caller wrote as a voice or a text do not accuse the channel', () => {
    for (const code of [3010, 3011, 3050]) {
      expect(parseP2Error(code, `unknown: ${GRANT}`, OURS).details.attempt?.channelError).toBeUndefined()
    }
  })

  it('come with a hint for the operator of the channel', () => {
    expect(causeOf(parseP2Error(3001, GRANT, OURS))).toContain('app id and access token')
    expect(causeOf(parseP2Error(3031, 'Fail to feed text, reason Init Engine Instance failed', OURS))).toContain(
      'cluster',
    )
    expect(causeOf(parseP2Error(55000000, 'resource mismatch', OURS))).toContain('generations')
  })
})

describe('The words of an upstream', () => {
  it('never carry the key, whole or in parts, nor hosts', () => {
    const words = `1234567890|canary-token 1234567890 canary-token at tts.internal and 10.0.0.1`
    for (const code of [3001, 3031, 3050]) {
      for (const sent of [OURS, CALLERS]) {
        const error = parseP2Error(code, words, sent)
        expect(`${error.message} ${causeOf(error)}`).not.toMatch(/canary|1234567890|internal|10\.0/)
      }
    }
  })

  it('carry no rest of a token that holds the app id', async () => {
    const nested: SentCredentials = { credentials: 'app7|token-of-app7-canary', callersKey: false }
    const words = 'token-of-app7-canary of app7 is unknown'
    const told = [parseP2Error(3001, words, nested), parseP2Error(3031, words, nested)]
    const body = new BytesSource(Buffer.from(JSON.stringify({ message: words })))
    told.push(await handshakeError({ status: 401, headers: {}, body }, nested))
    for (const error of told) {
      expect(causeOf(error)).toContain('[key] of [key] is unknown')
      expect(`${error.message} ${causeOf(error)}`).not.toMatch(/canary|token-of|app7/)
    }
  })

  it('may be anything', () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), fc.string({ unit: codePoint }), fc.boolean(), (code, text, callersKey) => {
        const error = parseP2Error(code, text, { ...OURS, callersKey })
        expect(error.details.attempt?.phase).toBe('answered')
      }),
    )
  })
})

describe('A refused handshake', () => {
  const refuse = (status: number, sent: SentCredentials, body = '{"code":3001,"message":"words, canary-token"}') => {
    const response: UpstreamResponse = {
      status,
      headers: { 'retry-after': '7' },
      body: new BytesSource(Buffer.from(body)),
    }
    return handshakeError(response, sent)
  }

  it.each([401, 402, 403])('with %d is the channel\u2019s fault with its own key', async (status) => {
    const error = await refuse(status, OURS)
    expect(error).toMatchObject({ kind: 'upstream_failed', details: { attempt: CHANNELS, retryable: false } })
    expect(error.message).not.toContain('words')
    expect(causeOf(error)).toContain('words, [key]')
  })

  it.each<[number, ErrorKind]>([
    [401, 'unauthorized'],
    [403, 'forbidden_model'],
    [429, 'rate_limited'],
  ])('with %d is about the caller\u2019s key when it was that', async (status, kind) => {
    expect(await refuse(status, CALLERS)).toMatchObject({ kind, details: { attempt: { phase: 'answered' } } })
  })

  it('with 429 says when to come back', async () => {
    const details = { retryAfterSeconds: 7, attempt: CHANNELS }
    expect(await refuse(429, OURS)).toMatchObject({ kind: 'rate_limited', details })
  })

  it.each([200, 302, 400, 404, 409, 413, 422, 426, 500])('with %d is the channel\u2019s fault', async (status) => {
    for (const sent of [OURS, CALLERS]) {
      const error = await refuse(status, sent, 'no JSON')
      expect(error).toMatchObject({ kind: 'upstream_failed', details: { attempt: CHANNELS } })
    }
  })

  it.each([503, 529])('with %d is the upstream\u2019s overload, and says when to come back', async (status) => {
    const details = { retryAfterSeconds: 7, attempt: CHANNELS }
    for (const sent of [OURS, CALLERS]) {
      expect(await refuse(status, sent)).toMatchObject({ kind: 'upstream_overloaded', details })
    }
  })
})
