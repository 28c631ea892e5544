import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import {
  type BeforeApplicationShutdown,
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
} from '@nestjs/common'
import { readKey } from '../auth/key.guard.js'
import { adminFingerprint } from '../config/auth-schema.js'
import { ConfigStore } from '../config/config-store.js'
import { digestOfKey } from '../core/caller.js'
import { GatewayError, UnknownPath } from '../core/errors.js'
import { contextOf, type RequestContext } from '../core/request-context.js'
import { callerAddress } from '../server/client-address.js'
import type { Admin, AuditLog } from './audit-log.js'

const WRONG_KEYS = 10
const FAILURE_WINDOW_MS = 60_000

/** Checks the admin key (`auth.adminKey`). */
@Injectable()
export class AdminAccess {
  /** Times of failed attempts on the performance clock; at most the limit of a minute. */
  private wrongAtMs: number[] = []

  constructor(private readonly store: ConfigStore) {}

  /** Without an admin key, all paths below `/admin` respond as unknown. */
  get exists(): boolean {
    return this.store.current.auth.adminKey !== undefined
  }

  /**
   * Returns the fingerprint of the admin key in the headers. Throws `key_missing`, `key_malformed` or `unauthorized`, and
   * after ten of the latter two within a minute `rate_limited` instead: a request without a key guesses none. The right key is
   * always admitted, so that wrong keys never lock the operator out.
   */
  authorize(headers: IncomingHttpHeaders): string {
    try {
      return this.check(readKey(headers, false))
    } catch (error) {
      if (!(error instanceof GatewayError && error.kind === 'key_missing')) this.countWrong()
      throw error
    }
  }

  private check(token: string): string {
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

const digestOf = (token: string): Buffer => Buffer.from(digestOfKey(token), 'latin1')

const UNKNOWN_ACTOR = '-'
const TRAIL_WINDOW_MS = 60_000
const NAMED_ADDRESSES = 10

/** A failed attempt. */
interface Refusal {
  readonly requestId: string
  readonly reason: string
  readonly method: string
  readonly address: string
}

/**
 * Records failed attempts: the first of a minute in full, and all others of that minute as one row with their
 * number, so that clients without the key cannot fill the audit log.
 */
export class FailedAttemptLog implements BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined
  /** Number of attempts after the first. */
  private refused = 0
  private readonly addresses = new Set<string>()

  constructor(
    private readonly trail: Pick<AuditLog, 'record'>,
    private readonly windowMs = TRAIL_WINDOW_MS,
  ) {}

  /** Resolves once the first attempt is written, or could not be; at once for others. */
  async record({ requestId, ...details }: Refusal): Promise<void> {
    if (this.timer !== undefined) {
      this.refused++
      if (this.addresses.size < NAMED_ADDRESSES) this.addresses.add(details.address)
      return
    }
    this.timer = setTimeout(() => void this.sumUp(), this.windowMs).unref()
    await this.trail.record(
      { actor: UNKNOWN_ACTOR, requestId },
      { action: 'authorize', details: { ...details } },
      'refused',
    )
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.sumUp()
  }

  private async sumUp(): Promise<void> {
    clearTimeout(this.timer)
    this.timer = undefined
    const { refused } = this
    const details = { refused, seconds: this.windowMs / 1000, addresses: [...this.addresses] }
    this.refused = 0
    this.addresses.clear()
    if (refused === 0) return
    await this.trail.record(
      { actor: UNKNOWN_ACTOR, requestId: UNKNOWN_ACTOR },
      { action: 'authorize', details },
      'refused',
    )
  }
}

const admins = new WeakMap<RequestContext, Admin>()

/** Admits requests with the admin key; without a configured key, admin routes respond as unknown. */
@Injectable()
export class AdminGuard implements CanActivate {
  constructor(
    private readonly access: AdminAccess,
    private readonly failedAttempts: FailedAttemptLog,
    private readonly store: ConfigStore,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<IncomingMessage>()
    const call = contextOf(request)
    if (!this.access.exists) throw new UnknownPath()
    call.responseHeaders['cache-control'] = 'no-store'
    try {
      admins.set(call, { actor: this.access.authorize(request.headers), requestId: call.requestId })
      return true
    } catch (error) {
      await this.recordRefusal(error, request)
      throw error
    }
  }

  private async recordRefusal(error: unknown, request: IncomingMessage): Promise<void> {
    const { requestId, method } = contextOf(request)
    const reason = error instanceof GatewayError ? error.kind : 'internal'
    const address = callerAddress(request, this.store.current.server.trustedProxies) ?? ''
    await this.failedAttempts.record({ requestId, reason, method, address })
  }
}

/** Parameter decorator for the `Admin`, on routes behind `AdminGuard`. */
export const CurrentAdmin = createParamDecorator((_data, context): Admin => {
  const call = contextOf(context.switchToHttp().getRequest<IncomingMessage>())
  const admin = admins.get(call)
  if (admin === undefined) throw new GatewayError('internal', 'The request has not been authorized.')
  return admin
})
