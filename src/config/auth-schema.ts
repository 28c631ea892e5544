import { hash } from 'node:crypto'
import { z } from 'zod'
import {
  bothRight,
  type DeepReadonly,
  distinct,
  globs,
  integer,
  KEY_RULE,
  keyHash,
  keyIdentifier,
  settings,
  textAs,
  type WorkerCount,
} from './value-types.js'

/** What every key that the gateway issues begins with; no upstream's key does. */
export const ISSUED_PREFIX = 'sk-gw-'

/** What stands between everybody and every key: it must not be guessed, however many guesses are made. */
export const LEAST_ADMIN_KEY_BITS = 128

/** 122 of its bits are random at best, and the clock gives most of them in some versions. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const UUID_BITS = 122

/**
 * Letters as words have them: in one case, or with a capital, and five or more of them, or set off from the rest. English
 * has one to two bits in a letter.
 */
const WORDS = /[A-Z]?[a-z]{5,}|[A-Z]{5,}|(?<![A-Za-z0-9])(?:[A-Z]?[a-z]+|[A-Z]+)(?![A-Za-z0-9])/g
const BITS_OF_A_WORDS_LETTER = 2

/** So many characters that stood together before tell nothing new. */
const REPEAT_CHARACTERS = 4

/**
 * How many bits a guesser has to find at least, judged by the text alone: the logarithm of how many different characters
 * there are for each character; less for words, nothing for what is repeated or counts on (`abc`, `321`).
 */
export function guessingBits(text: string): number {
  if (UUID.test(text)) return UUID_BITS
  const bitsEach = Math.log2(new Set(text).size)
  const isWord = wordPositions(text)
  const known = new Set<string>()
  let bits = 0
  for (let position = 0; position < text.length; position++) {
    const end = text.slice(Math.max(0, position - REPEAT_CHARACTERS + 1), position + 1).toLowerCase()
    const isNew = end.length < REPEAT_CHARACTERS || !known.has(end)
    known.add(end)
    if (isNew && !countsOn(text, position))
      bits += isWord[position] === true ? Math.min(bitsEach, BITS_OF_A_WORDS_LETTER) : bitsEach
  }
  return bits
}

function wordPositions(text: string): boolean[] {
  const positions = new Array<boolean>(text.length).fill(false)
  for (const { 0: word, index } of text.matchAll(WORDS)) positions.fill(true, index, index + word.length)
  return positions
}

/** The same step as the one before, and no further than to a neighbour: `aaa`, `abc`, `321`. */
function countsOn(text: string, position: number): boolean {
  const step = text.charCodeAt(position) - text.charCodeAt(position - 1)
  return position >= 2 && Math.abs(step) <= 1 && step === text.charCodeAt(position - 1) - text.charCodeAt(position - 2)
}

const isHash = (text: string): boolean => text.startsWith('sha256:')

/** The operator's own key. Only its hash is kept; what is behind a hash cannot be judged. */
const adminKey = z
  .string()
  .refine((text) => keyHash(text) !== undefined, KEY_RULE)
  .refine(
    (text) => keyHash(text) === undefined || isHash(text) || guessingBits(text) >= LEAST_ADMIN_KEY_BITS,
    `is too easy to guess, ${LEAST_ADMIN_KEY_BITS} bits are needed: make one with npm run keys -- admin-key`,
  )
  .transform((text) => ({ sha256: keyHash(text) ?? '', isJudged: !isHash(text) }))
  .meta({ type: `text of at least ${LEAST_ADMIN_KEY_BITS} bits, or a hash`, secret: true })

/** The operator's own key, known by its SHA-256 alone, 64 lower-case hex digits. `isJudged` is false where a hash was given. */
type AdminKey = DeepReadonly<z.output<typeof adminKey>>

const FINGERPRINT_DIGITS = 8

/** Tells admin keys apart in logs and in the audit log; nothing of the key or of its hash can be read from it. */
export const adminFingerprint = ({ sha256 }: AdminKey): string =>
  `admin-${hash('sha256', `fingerprint of ${sha256}`, 'hex').slice(0, FINGERPRINT_DIGITS)}`

const perMinute = integer({ min: 1, max: 1_000_000_000 }).exactOptional()
const atOnce = integer({ min: 1, max: 1_000_000 }).exactOptional()

/** What one key may use. Absent = no limit. */
const keyLimits = settings({
  requestsPerMinute: perMinute.describe('Requests that ask for work, by the minute'),
  tokensPerMinute: perMinute.describe('Prompt and completion together, by the minute'),
  audioSecondsPerMinute: perMinute.describe('Audio heard and spoken, by the minute'),
  concurrency: atOnce.describe('Requests under way at once'),
  realtimeSessions: atOnce.describe('Realtime sessions open at once'),
})

export type KeyLimits = DeepReadonly<z.output<typeof keyLimits>>

/** An access key as the file gives it, but hashed already. */
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
})

export const auth = settings({
  keys: distinct(accessKey, 'id', 'key')
    .meta({ type: 'list' })
    .default([])
    .describe('The callers. No two may share an id or a key'),
  defaultLimits: keyLimits
    .exactOptional()
    .describe(
      'Limits of keys that have none of their own, and of callers with a bearer of their own. See [limits.md](limits.md)',
    ),
  expectedOutputTokens: integer({ min: 0, max: 1_000_000 })
    .default(1000)
    .describe('Reserved of `tokensPerMinute` for each answer to a request that names no maximum; 0 = the prompt alone'),
  adminKey: adminKey
    .exactOptional()
    .describe(
      'Opens `/admin`; absent = there is none. A key that is easy to guess stops the start. See [keys.md](keys.md)',
    ),
  // A revoked key is to be dead within 5 s on every replica.
  keyRefreshMs: integer({ min: 100, max: 4000 })
    .default(2000)
    .describe('How often keys of the store are read anew, in milliseconds'),
}).refine(({ keys, adminKey: own }) => own === undefined || keys.every(({ key }) => key !== own.sha256), {
  path: ['adminKey'],
  error: 'must differ from every key of auth.keys',
  when: bothRight('keys', 'adminKey'),
})

type AuthEntry = DeepReadonly<z.output<typeof auth>>

export interface AccessKey extends Omit<AuthEntry['keys'][number], 'key'> {
  /** SHA-256 of the whole key, 64 lower-case hex digits. The key itself is forgotten at load. */
  readonly sha256: string
}

export interface AuthSection extends Omit<AuthEntry, 'keys'> {
  readonly keys: readonly AccessKey[]
  /**
   * Ids of keys that a gateway which does not know them may take for an upstream's and pass on; absent where no channel
   * passes any on, or all keys begin as they should.
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
 * Whether these processes would count limits by themselves: for what runs, or will. Workers that do grant a limit of 1 as
 * often as there are workers, and only a part of any other.
 */
export const countApart = ({ server, auth, redis }: LimitedSections): boolean =>
  server.workers !== 'auto' && server.workers > 1 && redis.url === undefined && hasLimits(auth)
