/** What one key may use. Absent = no limit. */
export interface KeyLimits {
  readonly requestsPerMinute?: number
  /** Prompt and completion together. */
  readonly tokensPerMinute?: number
  /** Heard and spoken. */
  readonly audioSecondsPerMinute?: number
  /** Requests under way at once. */
  readonly concurrency?: number
  /** Open at once. */
  readonly realtimeSessions?: number
}

export interface AccessKey {
  /** Shown in logs, metrics and usage; never the key itself. */
  readonly id: string
  /** SHA-256 of the whole key, 64 lower-case hex digits. The key itself is forgotten at load. */
  readonly sha256: string
  /** Globs; absent = every model. */
  readonly models?: readonly string[]
  readonly limits?: KeyLimits
}

/** The operator's own key, known by its SHA-256 alone, 64 lower-case hex digits. */
export interface AdminKey {
  readonly sha256: string
  /** False where the configuration gave the hash: how easily the key is guessed is not known. */
  readonly isJudged: boolean
}

export interface AuthSection {
  readonly keys: readonly AccessKey[]
  /**
   * Ids of keys that a gateway which does not know them may take for an upstream's and pass on; absent where no channel
   * passes any on, or all keys begin as they should.
   */
  readonly mistakableKeys?: readonly string[]
  /** Of keys that have none of their own, and of callers with a bearer of their own. */
  readonly defaultLimits?: KeyLimits
  /** Reserved of `tokensPerMinute` for each answer that has no maximum. */
  readonly expectedOutputTokens: number
  /** Opens `/admin`; absent = there is no such thing. */
  readonly adminKey?: AdminKey
  /** How often keys of the store are read anew, in milliseconds. */
  readonly keyRefreshMs: number
}
