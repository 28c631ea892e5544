import { Injectable } from '@nestjs/common'
import type { AccessKey } from '../config/access-config.js'
import { KeyStanding } from '../core/key-standing.js'
import { PastDigests } from './past-digests.js'

/** A key out of the store. Times are Unix milliseconds. */
export interface StoredKey extends AccessKey {
  readonly isRevoked: boolean
  /** Absent = never. */
  readonly expiresAtMs?: number
  /** Tells which of two versions of a key is the newer one. */
  readonly updatedAtMs: number
}

/** What the store says about a key, found by its hash. */
export type StoredVerdict =
  | { readonly verdict: 'valid'; readonly key: AccessKey; readonly standing: KeyStanding }
  | { readonly verdict: 'revoked' | 'expired' | 'unknown' }

interface Entry {
  readonly key: StoredKey
  /** Outlives the versions of a key; begun anew when one that had expired is given more time. */
  readonly standing: KeyStanding
}

const UNKNOWN: StoredVerdict = { verdict: 'unknown' }

/**
 * The keys of the store as this process last read them, so that nobody who calls waits for the store. Revoked keys are
 * kept as such: an older reading that is late must not bring one back to life.
 */
@Injectable()
export class StoredKeys {
  private readonly entries = new Map<string, Entry>()
  private readonly deleted = new PastDigests()
  private awaited = false

  /** There are keys in a store, and they have not been read yet: nobody can say yet that one does not exist. */
  get isAwaited(): boolean {
    return this.awaited
  }

  await(): void {
    this.awaited = true
  }

  /** What holds of a key now, by its SHA-256 in hex. */
  judge(sha256: string): StoredVerdict {
    const entry = this.entries.get(sha256)
    if (entry === undefined) return UNKNOWN
    const { key } = entry
    if (key.isRevoked) return { verdict: 'revoked' }
    return hasExpired(key, Date.now()) ? { verdict: 'expired' } : { verdict: 'valid', key, standing: entry.standing }
  }

  /** Whether a SHA-256 in hex is that of a key that was deleted, while this process runs. */
  wasOurs(sha256: string): boolean {
    return this.deleted.has(sha256)
  }

  /** Takes over what is newer than what is known. */
  learn(keys: Iterable<StoredKey>): void {
    for (const key of keys) {
      const known = this.entries.get(key.sha256)
      if (known !== undefined && known.key.updatedAtMs >= key.updatedAtMs) continue
      const standing = known?.standing.isOver === false ? known.standing : new KeyStanding()
      this.entries.set(key.sha256, { key, standing })
    }
    this.endWhatIsOver()
  }

  /** The same for all keys there are; one that is missing and was not changed since `sinceMs` has been deleted. */
  learnAll(keys: readonly StoredKey[], sinceMs: number): void {
    const present = new Set(keys.map(({ sha256 }) => sha256))
    for (const [sha256, { key, standing }] of this.entries) {
      if (present.has(sha256) || key.updatedAtMs >= sinceMs) continue
      this.entries.delete(sha256)
      this.deleted.add(sha256)
      standing.end()
    }
    this.awaited = false
    this.learn(keys)
  }

  private endWhatIsOver(): void {
    const nowMs = Date.now()
    for (const { key, standing } of this.entries.values()) {
      if (!standing.isOver && (key.isRevoked || hasExpired(key, nowMs))) standing.end()
    }
  }
}

const hasExpired = ({ expiresAtMs }: StoredKey, nowMs: number): boolean =>
  expiresAtMs !== undefined && expiresAtMs <= nowMs
