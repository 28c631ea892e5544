import { createHmac } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { judgeAccess, type VidgenAccess } from './vidgen-access.js'
import { VidgenRejection } from './vidgen-errors.js'

const KEYS = { accessKey: 'ak_demo', secretKey: 'sk_demo' }
const NOW_MS = 1_750_000_000_000
const GOOD = { iss: 'ak_demo', exp: 1_750_001_800, nbf: 1_749_999_995 }
const encoded = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

function token(claims: object | string, { secret = 'sk_demo', header = { alg: 'HS256', typ: 'JWT' } } = {}): string {
  const signed = `${encoded(header)}.${encoded(claims)}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** The code of the refusal; 0 when let in. */
function codeOf(authorization: string | undefined, access: VidgenAccess | undefined = KEYS, nowMs = NOW_MS): number {
  try {
    judgeAccess(authorization, access, nowMs)
    return 0
  } catch (error) {
    if (!(error instanceof VidgenRejection)) throw error
    return error.code
  }
}

describe('a caller of the video upstream', () => {
  it('is let in with the token of the published example', () => {
    const head = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9'
    const claims = 'eyJpc3MiOiJha19kZW1vIiwiZXhwIjoxNzUwMDAxODAwLCJuYmYiOjE3NDk5OTk5OTV9'
    expect(codeOf(`Bearer ${head}.${claims}.AmU4sggkniBKONqHrKawfRGJ3_oDhICITPfEG2hkSqQ`)).toBe(0)
    expect(token(GOOD)).toBe(`${head}.${claims}.AmU4sggkniBKONqHrKawfRGJ3_oDhICITPfEG2hkSqQ`)
  })

  it.each([
    ['without the header', undefined, 1001],
    ['with an empty header', ' ', 1001],
    ['with another scheme', `Basic ${token(GOOD)}`, 1002],
    ['with no token', 'Bearer', 1002],
    ['with something that is no token', 'Bearer ak_demo|sk_demo', 1002],
    ['with a token of four parts', `Bearer ${token(GOOD)}.x`, 1002],
    ['with claims that are no JSON', `Bearer ${token('claims')}`, 1002],
    ['with another algorithm', `Bearer ${token(GOOD, { header: { alg: 'none', typ: 'JWT' } })}`, 1002],
    ['without an end', `Bearer ${token({ iss: 'ak_demo', nbf: GOOD.nbf })}`, 1002],
    ['signed with another key', `Bearer ${token(GOOD, { secret: 'other' })}`, 1000],
    ['of another account', `Bearer ${token({ ...GOOD, iss: 'ak_other' })}`, 1000],
    ['too early', `Bearer ${token({ ...GOOD, nbf: NOW_MS / 1000 + 1 })}`, 1003],
    ['too late', `Bearer ${token({ ...GOOD, exp: NOW_MS / 1000 })}`, 1004],
  ])('%s is refused', (_, authorization, code) => {
    expect(codeOf(authorization)).toBe(code)
  })

  it('is let in until the last millisecond and from the first', () => {
    const authorization = `Bearer ${token(GOOD)}`
    expect(codeOf(authorization, KEYS, GOOD.nbf * 1000)).toBe(0)
    expect(codeOf(authorization, KEYS, GOOD.nbf * 1000 - 1)).toBe(1003)
    expect(codeOf(authorization, KEYS, GOOD.exp * 1000 - 1)).toBe(0)
    expect(codeOf(authorization, KEYS, GOOD.exp * 1000)).toBe(1004)
  })

  it('is let in with the one bearer, where there is one', () => {
    expect(codeOf('Bearer right', { bearer: 'right' })).toBe(0)
    expect(codeOf('Bearer wrong', { bearer: 'right' })).toBe(1000)
  })
})
