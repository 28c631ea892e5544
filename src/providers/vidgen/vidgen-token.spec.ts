import { createHmac } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { signedToken, VidgenTokens } from './vidgen-token.js'

const NOW_MS = 1_750_000_000_000
/** The vector of the wire reference. */
const VECTOR =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJha19kZW1vIiwiZXhwIjoxNzUwMDAxODAwLCJuYmYiOjE3NDk5OTk5OTV9.AmU4sggkniBKONqHrKawfRGJ3_oDhICITPfEG2hkSqQ'

const PAIR = { channelId: 'first', credentials: 'ak_demo|sk_demo' }

/** Tokens by a clock that the test moves. */
function tokensAt(startMs = NOW_MS) {
  const clock = { ms: startMs }
  const tokens = new VidgenTokens(() => clock.ms)
  return { clock, tokens, bearer: (context = PAIR) => tokens.authorize(context).bearer }
}

describe('A signed token', () => {
  it('is that of the test vector', () => {
    expect(signedToken('ak_demo', 'sk_demo', NOW_MS)).toBe(VECTOR)
    expect(tokensAt().bearer()).toBe(VECTOR)
  })

  it('counts whole seconds, and signs with the bytes of the key as they are', () => {
    expect(signedToken('ak_demo', 'sk_demo', NOW_MS + 999)).toBe(VECTOR)
    const [head = '', claims = '', signature] = signedToken('a', 'a2V5+/==', NOW_MS).split('.')
    expect(signature).toBe(
      createHmac('sha256', Buffer.from('a2V5+/==')).update(`${head}.${claims}`).digest('base64url'),
    )
    expect(Buffer.from(claims, 'base64url').toString()).toBe('{"iss":"a","exp":1750001800,"nbf":1749999995}')
  })
})

describe('The tokens of a channel', () => {
  it('serve for four fifths of their life, then a new one does', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    clock.ms = NOW_MS + 1_439_999
    expect(bearer()).toBe(VECTOR)
    clock.ms = NOW_MS + 1_440_000
    const renewed = signedToken('ak_demo', 'sk_demo', clock.ms)
    expect(renewed).not.toBe(VECTOR)
    expect(bearer()).toBe(renewed)
    clock.ms += 1_439_999
    expect(bearer()).toBe(renewed)
  })

  it('are made anew when the clock is set back: one of the future would be refused', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    clock.ms = NOW_MS - 60_000
    expect(bearer()).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
  })

  it('are one per channel and credential', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    clock.ms += 10_000
    expect(bearer({ ...PAIR, channelId: 'second' })).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
    expect(bearer({ ...PAIR, credentials: 'ak|sk' })).toBe(signedToken('ak', 'sk', clock.ms))
    expect(bearer()).toBe(VECTOR)
  })

  it('are forgotten when the upstream refuses them, but not when they have been replaced meanwhile', () => {
    const { clock, tokens, bearer } = tokensAt()
    bearer()
    clock.ms += 10_000
    tokens.forget(PAIR, 'an older token')
    expect(bearer()).toBe(VECTOR)
    tokens.forget(PAIR, VECTOR)
    expect(bearer()).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
  })

  it('are kept for a thousand credentials and no more, the oldest going first', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    for (let count = 0; count < 999; count++) bearer({ channelId: 'passing', credentials: `caller${count}|sk` })
    clock.ms += 1000
    expect(bearer()).toBe(VECTOR)
    bearer({ channelId: 'passing', credentials: 'one-more|sk' })
    expect(bearer()).toBe(signedToken('ak_demo', 'sk_demo', clock.ms))
  })

  it('are the newest again when they are renewed', () => {
    const { clock, bearer } = tokensAt()
    bearer()
    for (let count = 0; count < 999; count++) bearer({ channelId: 'passing', credentials: `caller${count}|sk` })
    clock.ms += 1_440_000
    const renewed = bearer()
    bearer({ channelId: 'passing', credentials: 'one-more|sk' })
    clock.ms += 1000
    expect(bearer()).toBe(renewed)
  })
})

describe('A credential', () => {
  it('without a bar is a bearer, sent as it is', () => {
    const { tokens } = tokensAt()
    expect(tokens.authorize({ channelId: 'first', credentials: 'sk-relay-key' })).toEqual({
      bearer: 'sk-relay-key',
      isSigned: false,
      secrets: ['sk-relay-key'],
    })
  })

  it('of two parts is signed with, and all of it and of its token is secret', () => {
    const { bearer, isSigned, secrets } = tokensAt().tokens.authorize(PAIR)
    expect(isSigned).toBe(true)
    expect([...secrets].sort()).toEqual(['ak_demo', 'ak_demo|sk_demo', 'sk_demo', bearer].sort())
  })

  it.each(['|', 'ak|', '|sk', 'a|b|c', 'a b|c', 'a|ü'])(
    'with its bar in the wrong place is refused: %s',
    (credentials) => {
      const { tokens } = tokensAt()
      expect(() => tokens.authorize({ channelId: 'passing', credentials })).toThrow(
        expect.objectContaining({ kind: 'key_malformed', details: { attempt: { phase: 'unsent' } } }),
      )
    },
  )

  it('uses the clock of the machine where no other is given', () => {
    const before = Math.floor(Date.now() / 1000)
    const [, claims = ''] = new VidgenTokens().authorize(PAIR).bearer.split('.')
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number }
    expect(exp).toBeGreaterThanOrEqual(before + 1800)
    expect(exp).toBeLessThanOrEqual(Math.floor(Date.now() / 1000) + 1800)
  })
})
