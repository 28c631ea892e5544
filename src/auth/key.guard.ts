import type { IncomingHttpHeaders } from 'node:http'
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common'
import type { Request } from 'express'
import type { EndpointSpec } from '../core/endpoint.js'
import { GatewayError } from '../core/errors.js'
import { contextOf } from '../core/request-context.js'
import { readStrictness } from '../dialects/verdicts.js'
import { RateLimiter } from '../limits/rate-limiter.js'
import { KeyTable } from './key-table.js'

const MAXIMUM_KEY_CHARACTERS = 512
/** As nearly everybody spells it: what a match of the whole costs is saved. */
const USUAL_SCHEME = 'Bearer '
const BEARER = /^Bearer +([\x21-\x7e]+) *$/i
const PRINTABLE = /^[\x21-\x7e]+$/

/**
 * The caller's key from its headers: `Authorization: Bearer`, or `x-api-key` where the dialect's clients send it.
 * Throws `key_missing` or `key_malformed`; the header's value is never part of the message.
 */
export function readKey(headers: IncomingHttpHeaders, acceptsApiKeyHeader: boolean): string {
  const { authorization } = headers
  if (authorization !== undefined && authorization !== '') return bearerKey(authorization)
  const apiKey = acceptsApiKeyHeader ? headers['x-api-key'] : undefined
  if (typeof apiKey === 'string' && apiKey !== '') return plainKey(apiKey)
  throw new GatewayError('key_missing', missingKeyMessage(acceptsApiKeyHeader))
}

function missingKeyMessage(acceptsApiKeyHeader: boolean): string {
  return acceptsApiKeyHeader
    ? 'No API key was sent. Send the header Authorization: Bearer <API_KEY>, or x-api-key: <API_KEY>.'
    : 'No API key was sent. Send the header Authorization: Bearer <API_KEY>.'
}

function bearerKey(authorization: string): string {
  // Length first: nothing is matched or hashed for an oversized header.
  if (authorization.length > MAXIMUM_KEY_CHARACTERS + 'Bearer '.length) throw malformedKey()
  const usual = authorization.startsWith(USUAL_SCHEME) ? authorization.slice(USUAL_SCHEME.length) : ''
  const key = PRINTABLE.test(usual) ? usual : BEARER.exec(authorization)?.[1]
  if (key === undefined || key.length > MAXIMUM_KEY_CHARACTERS) throw malformedKey()
  return key
}

/** A key that stands alone. Throws `key_malformed` when it cannot be one. */
export function plainKey(key: string): string {
  if (key.length > MAXIMUM_KEY_CHARACTERS || !PRINTABLE.test(key)) throw malformedKey()
  return key
}

const malformedKey = (): GatewayError =>
  new GatewayError(
    'key_malformed',
    `The API key is malformed: send Authorization: Bearer <API_KEY> with a key of at most ${MAXIMUM_KEY_CHARACTERS} printable characters.`,
  )

/**
 * Decides from the headers alone, before a byte of the body is read, who calls, how strictly, and whether their limits allow it.
 * Synchronous for callers without limits: an asynchronous guard costs a tenth of a relayed call.
 */
@Injectable()
export class KeyGuard implements CanActivate {
  constructor(
    private readonly keys: KeyTable,
    private readonly limits: RateLimiter,
  ) {}

  canActivate(context: ExecutionContext): true | Promise<true> {
    const request = context.switchToHttp().getRequest<Request>()
    const call = contextOf(request)
    const acceptsApiKeyHeader = call.endpoint?.keyHeaders.includes('x-api-key') === true
    call.caller = this.keys.identify(readKey(request.headers, acceptsApiKeyHeader), call.sentKey)
    call.sentKey = undefined
    call.isStrict = readStrictness(request.headers, call.endpoint)
    return this.limits.begin(call)
  }
}

const OTHER_KEY_HEADER = 'sec-websocket-protocol'

/**
 * Why a request has no caller, by the headers in which keys are sent; undefined where it has one, where that is not known yet, and
 * where its key may stand in another header.
 */
export function keyFault(
  keys: KeyTable,
  { authorization, apiKey }: { readonly authorization: string | undefined; readonly apiKey: string | undefined },
  { keyHeaders }: EndpointSpec,
): GatewayError | undefined {
  if (keyHeaders.includes(OTHER_KEY_HEADER)) return undefined
  try {
    keys.identify(readKey({ authorization, 'x-api-key': apiKey }, keyHeaders.includes('x-api-key')))
    return undefined
  } catch (error) {
    return error instanceof GatewayError && error.kind !== 'overloaded' ? error : undefined
  }
}
