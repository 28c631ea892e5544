import { hash } from 'node:crypto'
import * as z from 'zod'
import {
  bothValid,
  type DeepReadonly,
  distinct,
  globs,
  integer,
  KEY_RULE,
  keyHash,
  keyIdentifier,
  oneOf,
  settings,
  textAs,
  type WorkerCount,
} from './value-types.js'

/** Prefix of all keys that the gateway issues; no upstream uses it. */
export const ISSUED_PREFIX = 'sk-gw-'

/** Minimum entropy of the admin key, which gives access to all other keys. */
export const MINIMUM_ADMIN_KEY_BITS = 128

/** At most 122 bits of a UUID are random; in some versions most of them are the time. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const UUID_BITS = 122

/**
 * Letters as words have them: in one case, or with a capital, and five or more of them, or set off from the rest. English
 * has one to two bits in a letter.
 */
const WORDS = /[A-Z]?[a-z]{5,}|[A-Z]{5,}|(?<![A-Za-z0-9])(?:[A-Z]?[a-z]+|[A-Z]+)(?![A-Za-z0-9])/g
const BITS_OF_A_WORDS_LETTER = 2

/** A sequence of this length that occurred before adds no entropy. */
const REPEAT_CHARACTERS = 4

/**
 * Estimated entropy of a key in bits, by its text alone: for each character, the logarithm of the number of different
 * characters; less for words, none for repetitions and sequences (`abc`, `321`).
 */
export function estimatedBits(text: string): number {
  if (UUID.test(text)) return UUID_BITS
  const bitsEach = Math.log2(new Set(text).size)
  const isWord = wordPositions(text)
  const known = new Set<string>()
  let bits = 0
  for (let position = 0; position < text.length; position++) {
    const end = text.slice(Math.max(0, position - REPEAT_CHARACTERS + 1), position + 1).toLowerCase()
    const isNew = end.length < REPEAT_CHARACTERS || !known.has(end)
    known.add(end)
    if (isNew && !continuesSequence(text, position))
      bits += isWord[position] === true ? Math.min(bitsEach, BITS_OF_A_WORDS_LETTER) : bitsEach
  }
  return bits
}

function wordPositions(text: string): boolean[] {
  const positions = new Array<boolean>(text.length).fill(false)
  for (const { 0: word, index } of text.matchAll(WORDS)) positions.fill(true, index, index + word.length)
  return positions
}

/** Whether a character continues a sequence with a step of at most one: `aaa`, `abc`, `321`. */
function continuesSequence(text: string, position: number): boolean {
  const step = text.charCodeAt(position) - text.charCodeAt(position - 1)
  return position >= 2 && Math.abs(step) <= 1 && step === text.charCodeAt(position - 1) - text.charCodeAt(position - 2)
}

const isHash = (text: string): boolean => text.startsWith('sha256:')

/** The operator's key. Only its hash is kept; a key given as a hash cannot be checked. */
const adminKey = z
  .string()
  .refine((text) => keyHash(text) !== undefined, KEY_RULE)
  .refine(
    (text) => keyHash(text) === undefined || isHash(text) || estimatedBits(text) >= MINIMUM_ADMIN_KEY_BITS,
    `is too easy to guess, ${MINIMUM_ADMIN_KEY_BITS} bits are needed: make one with npm run keys -- admin-key`,
  )
  .transform((text) => ({ sha256: keyHash(text) ?? '', isJudged: !isHash(text) }))
  .meta({ type: `text of at least ${MINIMUM_ADMIN_KEY_BITS} bits, or a hash`, secret: true })

/** The operator's key as SHA-256, 64 lower-case hex digits. `isJudged` is false if it was given as a hash. */
type AdminKey = DeepReadonly<z.output<typeof adminKey>>

const FINGERPRINT_DIGITS = 8

/** Identifies an admin key in logs and in the audit log without revealing the key or its hash. */
export const adminFingerprint = ({ sha256 }: AdminKey): string =>
  `admin-${hash('sha256', `fingerprint of ${sha256}`, 'hex').slice(0, FINGERPRINT_DIGITS)}`

const perMinute = integer({ min: 1, max: 1_000_000_000 }).exactOptional()
const atOnce = integer({ min: 1, max: 1_000_000 }).exactOptional()

/** What one key may use. Absent = no limit. */
const keyLimits = settings({
  requestsPerMinute: perMinute.describe('POST requests and WebSocket upgrades per minute'),
  tokensPerMinute: perMinute.describe('Prompt and completion tokens per minute'),
  audioSecondsPerMinute: perMinute.describe('Seconds of input and output audio per minute'),
  concurrency: atOnce.describe('Concurrent requests'),
  realtimeSessions: atOnce.describe('Concurrent realtime sessions'),
})

export type KeyLimits = DeepReadonly<z.output<typeof keyLimits>>

/** How requests with a key are translated to other dialects. */
export const KEY_TRANSLATIONS = ['strict'] as const
export type KeyTranslation = (typeof KEY_TRANSLATIONS)[number]

/** An access key of the file, already hashed. */
const accessKey = settings({
  id: keyIdentifier.describe(
    'Shown in logs; the key itself never is. Neither `-` nor `caller`: they mean callers without a key of the gateway',
  ),
  key: textAs(KEY_RULE, keyHash)
    .meta({ type: '1–512 printable ASCII, or a hash', secret: true })
    .describe('The key, or `sha256:` and 64 hex digits. Only the hash is kept in memory'),
  models: globs.exactOptional().describe('Models the key may use; absent = every model'),
  limits: keyLimits
    .exactOptional()
    .describe('What the key may use; absent = `auth.defaultLimits`, `{}` = no limit. See [limits.md](limits.md)'),
  translation: oneOf(KEY_TRANSLATIONS)
    .exactOptional()
    .describe(
      '`strict` = refuse requests that a translation would approximate, or drop something of. See [dialects.md](dialects.md)',
    ),
})

export const auth = settings({
  keys: distinct(accessKey, 'id', 'key')
    .meta({ type: 'list' })
    .default([])
    .describe('The callers. No two may share an id or a key'),
  defaultLimits: keyLimits
    .exactOptional()
    .describe(
      'Limits of keys without `limits`, and of callers with an upstream key of their own. See [limits.md](limits.md)',
    ),
  expectedOutputTokens: integer({ min: 0, max: 1_000_000 })
    .default(1000)
    .describe('Tokens reserved from `tokensPerMinute` for each response without a maximum; 0 = only the prompt'),
  adminKey: adminKey
    .exactOptional()
    .describe(
      'Key of `/admin`; absent = no `/admin`. The gateway does not start with a key that is easy to guess. See [keys.md](keys.md)',
    ),
  // A revoked key must be refused within 5 s on every replica.
  keyRefreshMs: integer({ min: 100, max: 4000 })
    .default(2000)
    .describe('Interval at which stored keys are reloaded, in milliseconds'),
}).refine(({ keys, adminKey: own }) => own === undefined || keys.every(({ key }) => key !== own.sha256), {
  path: ['adminKey'],
  error: 'must differ from every key of auth.keys',
  when: bothValid('keys', 'adminKey'),
})

type AuthEntry = DeepReadonly<z.output<typeof auth>>

export interface AccessKey extends Omit<AuthEntry['keys'][number], 'key'> {
  /** SHA-256 of the whole key, 64 lower-case hex digits. The key itself is forgotten at load. */
  readonly sha256: string
}

export interface AuthSection extends Omit<AuthEntry, 'keys'> {
  readonly keys: readonly AccessKey[]
  /**
   * Ids of keys that, once removed from the configuration, would be passed on as an upstream's key; absent if no channel
   * passes keys on, or all keys begin with `ISSUED_PREFIX`.
   */
  readonly mistakableKeys?: readonly string[]
}

const isLimited = (limits: KeyLimits | undefined): boolean =>
  limits !== undefined && Object.values<number | undefined>(limits).some((limit) => limit !== undefined)

interface LimitedAuth extends Pick<AuthSection, 'defaultLimits'> {
  readonly keys: readonly { readonly limits?: KeyLimits }[]
}

/** Whether the configuration gives any key, or callers with bearers of their own, a limit. */
export const hasLimits = ({ keys, defaultLimits }: LimitedAuth): boolean =>
  isLimited(defaultLimits) || keys.some(({ limits }) => isLimited(limits))

export const LIMITS_NEED_REDIS =
  'server.workers must be 1, or redis.url must be set, where auth.defaultLimits or auth.keys[].limits are: ' +
  'workers count together in Redis alone'

interface LimitedSections {
  readonly server: { readonly workers: WorkerCount }
  readonly redis: { readonly url?: string }
  readonly auth: LimitedAuth
}

/**
 * Whether several workers would count limits without Redis: each would allow its part of a limit, but at least 1. Used for
 * the running configuration and for a new one.
 */
export const countApart = ({ server, auth, redis }: LimitedSections): boolean =>
  server.workers !== 'auto' && server.workers > 1 && redis.url === undefined && hasLimits(auth)
