import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { Injectable } from '@nestjs/common'
import { readKey } from '../auth/bearer.js'
import { adminFingerprint } from '../config/admin-key.js'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'

const WRONG_KEYS = 10
const FAILURE_WINDOW_MS = 60_000

/** Who may act as the operator: whoever has `auth.adminKey`. */
@Injectable()
export class AdminAccess {
  /** When wrong keys came, on the performance clock; at most as many as are answered. */
  private wrongAtMs: number[] = []

  constructor(private readonly store: ConfigStore) {}

  /** Without an admin key there is no administration, and nothing shows that there could be. */
  get exists(): boolean {
    return this.store.current.auth.adminKey !== undefined
  }

  /**
   * The fingerprint of the admin key that the headers hold. Throws `key_missing`, `key_malformed` or `unauthorized`, and
   * after ten of these within a minute `rate_limited` instead; the right key is always let in, so that nobody can lock the
   * operator out.
   */
  authorize(headers: IncomingHttpHeaders): string {
    try {
      return this.judge(readKey(headers, false))
    } catch (error) {
      this.countWrong()
      throw error
    }
  }

  private judge(token: string): string {
    const { adminKey } = this.store.current.auth
    // Both are hashes in hex, so they are equally long.
    if (adminKey !== undefined && timingSafeEqual(digestOf(token), Buffer.from(adminKey.sha256, 'latin1')))
      return adminFingerprint(adminKey)
    throw new GatewayError('unauthorized', 'The admin key is not valid.')
  }

  private countWrong(): void {
    const nowMs = performance.now()
    this.wrongAtMs = this.wrongAtMs.filter((atMs) => nowMs - atMs < FAILURE_WINDOW_MS)
    const [oldestMs = nowMs] = this.wrongAtMs
    if (this.wrongAtMs.length < WRONG_KEYS) {
      this.wrongAtMs.push(nowMs)
      return
    }
    throw new GatewayError('rate_limited', 'Too many wrong admin keys were sent. Please wait.', {
      retryAfterSeconds: Math.max(1, Math.ceil((oldestMs + FAILURE_WINDOW_MS - nowMs) / 1000)),
    })
  }
}

const digestOf = (token: string): Buffer => Buffer.from(hash('sha256', token, 'hex'), 'latin1')
