import { createHmac } from 'node:crypto'
import { Inject, Injectable, Optional } from '@nestjs/common'
import { GatewayError } from '../../core/errors.js'
import type { AttemptContext } from '../contract.js'

const LIFETIME_S = 1800
/** The upstream's clock may be that far behind ours. */
const BACKDATED_S = 5
/** At four fifths of its life a token is replaced, so that none expires on its way. */
const RENEWAL_MS = LIFETIME_S * 1000 * 0.8
/** Callers with keys of their own may come in any number. */
const MAXIMUM_TOKENS = 1000

const PAIR = /^([\x21-\x7b\x7d\x7e]+)\|([\x21-\x7b\x7d\x7e]+)$/

/** Unix milliseconds; tests put a clock of their own here. */
export const VIDGEN_CLOCK = Symbol('vidgen clock')

/** With what a request is sent. */
export interface VidgenAuthorization {
  readonly bearer: string
  /** Made here, so that another can be made. */
  readonly isSigned: boolean
  /** Everything the upstream could quote back that must not be seen. */
  readonly secrets: readonly string[]
}

interface SignedToken {
  readonly text: string
  readonly signedAtMs: number
}

type Credentials = Pick<AttemptContext, 'channelId' | 'credentials'>

/** HS256 over `iss`, `exp`, `nbf` in this order, as the upstream's own examples have them. */
export function signedToken(accessKey: string, secretKey: string, nowMs: number): string {
  const nowS = Math.floor(nowMs / 1000)
  const claims = { iss: accessKey, exp: nowS + LIFETIME_S, nbf: nowS - BACKDATED_S }
  const unsigned = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`
  return `${unsigned}.${createHmac('sha256', secretKey).update(unsigned).digest('base64url')}`
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The tokens in use, one per credential and channel. */
@Injectable()
export class VidgenTokens {
  /** Oldest first. */
  private readonly tokens = new Map<string, SignedToken>()

  constructor(@Optional() @Inject(VIDGEN_CLOCK) private readonly nowMs: () => number = Date.now) {}

  /** `AK|SK` is signed with, anything without a bar is a bearer. Throws `key_malformed` for a bar in the wrong place. */
  authorize(context: Credentials): VidgenAuthorization {
    const { credentials } = context
    if (!credentials.includes('|')) return { bearer: credentials, isSigned: false, secrets: [credentials] }
    const [, accessKey, secretKey] = PAIR.exec(credentials) ?? []
    if (accessKey === undefined || secretKey === undefined) throw malformedPair()
    const bearer = this.tokenFor(context, accessKey, secretKey)
    return { bearer, isSigned: true, secrets: [bearer, credentials, secretKey, accessKey] }
  }

  /** Drops a token the upstream has refused, unless it has been replaced in the meantime. */
  forget(context: Credentials, bearer: string): void {
    const slot = slotOf(context)
    if (this.tokens.get(slot)?.text === bearer) this.tokens.delete(slot)
  }

  private tokenFor(context: Credentials, accessKey: string, secretKey: string): string {
    const slot = slotOf(context)
    const known = this.tokens.get(slot)
    const signedAtMs = this.nowMs()
    const ageMs = known === undefined ? Infinity : signedAtMs - known.signedAtMs
    // A clock that was set back makes a token of the future, which is refused.
    if (known !== undefined && ageMs >= 0 && ageMs < RENEWAL_MS) return known.text
    const text = signedToken(accessKey, secretKey, signedAtMs)
    this.tokens.delete(slot)
    this.tokens.set(slot, { text, signedAtMs })
    const [oldest] = this.tokens.keys()
    if (this.tokens.size > MAXIMUM_TOKENS && oldest !== undefined) this.tokens.delete(oldest)
    return text
  }
}

const slotOf = ({ channelId, credentials }: Credentials): string => `${channelId} ${credentials}`

const malformedPair = (): GatewayError =>
  new GatewayError('key_malformed', 'The API key for this model must have the form <ACCESS_KEY>|<SECRET_KEY>.', {
    attempt: { phase: 'unsent' },
  })
