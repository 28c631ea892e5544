import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { seededRandom } from '../../test/support/seeded-random.js'
import { adminFingerprint, guessingBits, LEAST_ADMIN_KEY_BITS } from './admin-key.js'
import { ConfigError } from './config-fault.js'
import { configWarnings } from './config-warnings.js'
import { parseConfig } from './load-config.js'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const GOOD = 'sk-gw-admin-Wm3vQx8LrT5kZ0pYb7NcJ2sHd9FgAe4'

const withAdminKey = (adminKey: unknown, keys: object[] = []) =>
  parseConfig(JSON.stringify({ auth: { adminKey, keys } }), {})

function faultsOf(adminKey: unknown, keys: object[] = []): readonly string[] {
  try {
    withAdminKey(adminKey, keys)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
  return []
}

const TOO_EASY = ['auth.adminKey: is too easy to guess, 128 bits are needed: make one with npm run keys -- admin-key']

describe('auth.adminKey', () => {
  it.each([
    'a',
    'admin',
    'changeme',
    'a'.repeat(512),
    'ab'.repeat(256),
    'password'.repeat(20),
    'Password1!'.repeat(20),
    '0123456789'.repeat(20),
    'abcdefghijklmnopqrstuvwxyz',
    'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789',
    'zyxwvutsrqponmlkjihgfedcba9876543210',
    'qwertyuiopasdfghjklzxcvbnm1234567890',
    'correct-horse-battery-staple-2024-gateway',
    'CorrectHorseBatteryStapleGatewayAdmin',
    'this.is.the.admin.key.of.our.gateway.in.production',
    'sk-gw-admin-secret-key-do-not-share-0001',
    '123e4567-e89b-12d3-a456-426614174000',
    '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d',
    '2026-11-22T06:44:06.000Z-2026-11-22T06:44:07.000Z',
    randomBytes(12).toString('hex'),
    randomBytes(15).toString('base64url'),
  ])('refuses the start with %s, and does not say it', (key) => {
    expect(faultsOf(key)).toEqual(TOO_EASY)
  })

  it.each([GOOD, '?q8F)zR2!mK5$wX9^bT4&nL7*pH3', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934c'])(
    'takes %s, and forgets it for its hash',
    (key) => {
      const { auth } = withAdminKey(key)
      expect(auth.adminKey).toEqual({ sha256: sha256(key), isJudged: true })
    },
  )

  it('takes what openssl and the gateway itself make, whatever it is', () => {
    // The same in every run: one key in some 300,000 does happen to look like words, and is refused.
    const random = seededRandom()
    for (let count = 0; count < 3000; count += 1) {
      const bytes = Buffer.from(Array.from({ length: 32 }, () => Math.floor(random() * 256)))
      expect(guessingBits(bytes.toString('hex'))).toBeGreaterThanOrEqual(LEAST_ADMIN_KEY_BITS)
      expect(guessingBits(bytes.toString('base64'))).toBeGreaterThanOrEqual(LEAST_ADMIN_KEY_BITS)
    }
  })

  it('never counts more than the characters could hold, nor anything for a text said twice', () => {
    const text = fc.string({ minLength: 1, maxLength: 80 })
    fc.assert(
      fc.property(text, (once) => {
        const bits = guessingBits(once)
        expect(bits).toBeLessThanOrEqual(once.length * Math.log2(new Set(once).size) + 1e-9)
        // What is new at the seam are at most three groups of characters.
        const each = Math.log2(new Set(once).size)
        expect(guessingBits(once + once)).toBeLessThanOrEqual((once.length + 3) * each + 1e-9)
      }),
    )
  })

  it('takes a hash unseen, with a warning, and is warned of in no other form', () => {
    const hashed = withAdminKey(`sha256:${sha256('weak').toUpperCase()}`)
    expect(hashed.auth.adminKey).toEqual({ sha256: sha256('weak'), isJudged: false })
    expect(configWarnings(hashed).filter((warning) => warning.includes('adminKey'))).toEqual([
      'auth.adminKey is given as a hash: nobody has judged how easily the key is guessed',
    ])
    expect(configWarnings(withAdminKey(GOOD)).filter((warning) => warning.includes('auth'))).toEqual([])
  })

  it.each([12345, true, ['x'], {}, `${GOOD} ${GOOD}`, 'schlüssel', `${GOOD}${'k'.repeat(512)}`, 'sha256:abc'])(
    'is at fault as %j',
    (key) => {
      expect(faultsOf(key)).toEqual([expect.stringMatching(/^auth\.adminKey: must be /)])
    },
  )

  it('is nobody else’s key, in whichever form either is written', () => {
    const fault = ['auth.adminKey: must differ from every key of auth.keys']
    expect(faultsOf(GOOD, [{ id: 'a', key: GOOD }])).toEqual(fault)
    expect(faultsOf(`sha256:${sha256(GOOD)}`, [{ id: 'a', key: GOOD }])).toEqual(fault)
    expect(faultsOf(GOOD, [{ id: 'a', key: `sha256:${sha256(GOOD)}` }])).toEqual(fault)
  })

  it('is told apart by a fingerprint that gives away neither key nor hash', () => {
    const print = adminFingerprint({ sha256: sha256(GOOD), isJudged: true })
    expect(print).toMatch(/^admin-[0-9a-f]{8}$/)
    expect(sha256(GOOD)).not.toContain(print.slice(6))
    expect(print).not.toBe(adminFingerprint({ sha256: sha256(`${GOOD}x`), isJudged: true }))
  })
})
