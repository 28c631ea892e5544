import { createHash } from 'node:crypto'
import { expect, jest } from '@jest/globals'
import { KeyRefresher } from '../../src/auth/key-cache.js'
import { newKey, type StoredKey, StoredKeys } from '../../src/auth/key-table.js'
import type { KeySnapshot, KeyRepository } from '../../src/auth/key.repository.js'
import { ConfigStore } from '../../src/config/config-store.js'
import type { GatewayConfig } from '../../src/config/settings.js'
import { GatewayError } from '../../src/core/errors.js'
import { parseConfig } from './config.js'

export const SHA256 = createHash('sha256').update('a').digest('hex')
export const START_MS = 1_800_000_000_000
/** More than any pause between two questions. */
const LONGEST_PAUSE_MS = 60_000

export const key = (given: Partial<StoredKey> = {}): StoredKey => ({
  id: 'a',
  sha256: SHA256,
  isRevoked: false,
  updatedAtMs: START_MS,
  ...given,
})

export const readingEvery = (keyRefreshMs: number): GatewayConfig =>
  parseConfig(JSON.stringify({ auth: { adminKey: newKey('sk-gw-admin-'), keyRefreshMs } }), {})

/** A store whose clock is the test's, and whose rows are what the test says. */
export class FakeKeyRepository implements Pick<KeyRepository, 'read'> {
  rows: readonly StoredKey[] = []
  isAway = false
  /** What its clock is behind. */
  behindMs = 0
  /** How long each of the next answers takes; those after them take no time. */
  delaysMs: number[] = []
  /** After how long each of the next questions fails. */
  failuresMs: number[] = []
  readonly questions: (number | undefined)[] = []
  readonly askedAtMs: number[] = []

  get nowMs(): number {
    return Date.now() - this.behindMs
  }

  async read(sinceMs?: number): Promise<KeySnapshot> {
    this.questions.push(sinceMs)
    this.askedAtMs.push(Date.now() - START_MS)
    if (this.isAway) throw new GatewayError('overloaded', 'The database cannot be reached.')
    const failureMs = this.failuresMs.shift()
    if (failureMs !== undefined) {
      await pause(failureMs)
      throw new GatewayError('overloaded', 'The database has ended the connection.')
    }
    const reading = { keys: this.rows.filter(({ updatedAtMs }) => updatedAtMs >= (sinceMs ?? 0)), asOfMs: this.nowMs }
    const delayMs = this.delaysMs.shift() ?? 0
    if (delayMs > 0) await pause(delayMs)
    return reading
  }

  /** As the store does it: a later version never looks older. */
  change(isRevoked: boolean): void {
    this.rows = this.rows.map((row) => ({
      ...row,
      isRevoked,
      updatedAtMs: Math.max(this.nowMs, row.updatedAtMs + 1),
    }))
  }
}

/** By the clock of the test. */
const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })

/** A refresher, and what it says; for tests whose timers are faked from `START_MS` on. */
export class KeyRefresherLab {
  readonly repository = new FakeKeyRepository()
  readonly stored = new StoredKeys()
  readonly lines: string[] = []
  refresher!: KeyRefresher

  begin(config = new ConfigStore(readingEvery(2_000))): Promise<void> {
    const note = (...words: unknown[]): void => {
      this.lines.push(String(words.at(-1)))
    }
    const logger = { info: note, warn: note }
    this.refresher = new KeyRefresher(config, this.repository as unknown as KeyRepository, this.stored, logger)
    return this.refresher.onApplicationBootstrap()
  }

  status(): string {
    return this.stored.lookUp(SHA256).status
  }

  /** It asks the store nothing more afterwards. Its timers cannot be counted: a spec file shares the clock with what others left. */
  async end(): Promise<void> {
    const stopped = this.refresher.beforeApplicationShutdown()
    await jest.advanceTimersByTimeAsync(10_000)
    await stopped
    const asked = this.repository.questions.length
    await jest.advanceTimersByTimeAsync(LONGEST_PAUSE_MS)
    expect(this.repository.questions.length).toBe(asked)
  }
}
