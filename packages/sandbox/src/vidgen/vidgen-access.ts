import { createHmac, timingSafeEqual } from 'node:crypto'
import { fieldOf, type JsonObject, parseJsonObject, textOf } from '../server/json-value.js'
import { VidgenRejection } from './vidgen-errors.js'

/** Whom the service lets in: who signs tokens with a pair of keys, or who knows a bearer. */
export type VidgenAccess = { readonly accessKey: string; readonly secretKey: string } | { readonly bearer: string }

/**
 * Judges the header `Authorization`: 1001 without it, 1002 when it cannot be read, 1000 when it is not of this account,
 * 1003 and 1004 outside the token's time. Without `access` every bearer but `bad` is good. Throws VidgenRejection.
 */
export function judgeAccess(authorization: string | undefined, access: VidgenAccess | undefined, nowMs: number): void {
  if (authorization === undefined || authorization.trim() === '') throw new VidgenRejection(1001)
  const token = /^Bearer (\S+)$/.exec(authorization)?.[1]
  if (token === undefined) throw new VidgenRejection(1002)
  if (access !== undefined && 'accessKey' in access) judgeToken(token, access, nowMs)
  else if (access === undefined ? token === 'bad' : token !== access.bearer) throw new VidgenRejection(1000)
}

function judgeToken(token: string, keys: { accessKey: string; secretKey: string }, nowMs: number): void {
  const [header = '', claims = '', signature = '', ...rest] = token.split('.')
  const head = decodeTokenPart(header)
  const body = decodeTokenPart(claims)
  if (rest.length > 0 || body === undefined || fieldOf(head, 'alg') !== 'HS256') throw new VidgenRejection(1002)
  const expected = createHmac('sha256', keys.secretKey).update(`${header}.${claims}`).digest()
  const given = Buffer.from(signature, 'base64url')
  const isSigned = given.length === expected.length && timingSafeEqual(given, expected)
  if (!isSigned || textOf(body['iss']) !== keys.accessKey) throw new VidgenRejection(1000)
  const { exp, nbf } = body
  if (typeof exp !== 'number' || typeof nbf !== 'number') throw new VidgenRejection(1002)
  if (nbf * 1000 > nowMs) throw new VidgenRejection(1003)
  if (exp * 1000 <= nowMs) throw new VidgenRejection(1004)
}

function decodeTokenPart(part: string): JsonObject | undefined {
  return parseJsonObject(Buffer.from(part, 'base64url'))
}
