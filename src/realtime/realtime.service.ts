import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { keyRevoked, type KeyRevocation } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { byLabel, Metrics, registerCounter, registerGauge, single } from '../observability/metrics.js'
import { Readiness } from '../observability/readiness.js'
import type { RealtimeOpening, RealtimeUpstream } from '../providers/contract.js'
import { ProviderRouter } from '../routing/router.js'
import { UpgradeResponse } from '../server/upgrade.js'
import { SessionTraffic } from './session-context.js'

/** When a refused client may look again; by then some session has ended or another replica has taken over. */
const RETRY_AFTER_SECONDS = 5

/** What can happen to a session from outside. */
export interface SlotHolder {
  /** The process is to end: it ends with the answer that is under way, at once where there is none. */
  finish(): void
  /** The process ends. */
  drain(): void
  /** The key that opened it works no more. */
  revoke(): void
}

/** A place among the sessions that may be open at once, taken before the upstream is dialled. */
class SessionSlot {
  /** Resolves when the slot is free again. */
  readonly left: Promise<void>
  private session: SlotHolder | undefined
  private release: () => void = () => undefined
  private readonly forgetKey: (() => void) | undefined

  constructor(
    private readonly slots: Set<SessionSlot>,
    private readonly readiness: Readiness,
    private readonly revocation: KeyRevocation | undefined,
  ) {
    slots.add(this)
    this.forgetKey = revocation?.onOver(() => this.session?.revoke())
    this.left = new Promise((resolve) => {
      this.release = resolve
    })
  }

  /**
   * Throws `overloaded` once the gateway drains, `unauthorized` when the key has been revoked meanwhile: a session that
   * begins now would be closed at once.
   */
  assertOpen(): void {
    assertNotDraining(this.readiness)
    if (this.revocation?.isOver === true) throw keyRevoked()
  }

  occupy(session: SlotHolder): void {
    this.session = session
    if (this.readiness.isDraining) session.finish()
    if (this.revocation?.isOver === true) session.revoke()
  }

  finish(): void {
    this.session?.finish()
  }

  drain(): void {
    this.session?.drain()
  }

  leave(): void {
    this.slots.delete(this)
    this.forgetKey?.()
    this.release()
  }
}

/**
 * Bounds how many sessions are open or being dialled. When the gateway drains they end: those with an answer under way with
 * that answer, at the latest when the grace time is over.
 */
@Injectable()
export class SessionSlots implements BeforeApplicationShutdown {
  private readonly slots = new Set<SessionSlot>()

  constructor(
    private readonly store: ConfigStore,
    private readonly readiness: Readiness,
  ) {
    readiness.onDraining(this.finish)
    readiness.onGraceOver(this.drain)
  }

  /** A session has still to account for itself when its client is gone already. */
  async beforeApplicationShutdown(): Promise<void> {
    this.drain()
    await Promise.all([...this.slots].map((slot) => slot.left))
  }

  /** Sessions open or being dialled. */
  get taken(): number {
    return this.slots.size
  }

  /** For the holder of a key. Throws `overloaded` when all slots are taken, or when the gateway drains. */
  take(standing?: KeyRevocation): SessionSlot {
    if (this.slots.size >= this.store.current.limits.realtimeSessions) {
      throw overloaded('All realtime sessions of this gateway are in use. Please try again later.')
    }
    assertNotDraining(this.readiness)
    return new SessionSlot(this.slots, this.readiness, standing)
  }

  private readonly finish = (): void => {
    for (const slot of [...this.slots]) slot.finish()
  }

  private readonly drain = (): void => {
    for (const slot of [...this.slots]) slot.drain()
  }
}

function assertNotDraining({ isDraining }: Readiness): void {
  if (isDraining) throw overloaded('The gateway shuts down. Please connect again.')
}

const overloaded = (message: string): GatewayError =>
  new GatewayError('overloaded', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })

/** Tells of open sessions and what passes through them while they are open: their calls end hours later. */
@Injectable()
export class RealtimeMetrics {
  constructor(slots: SessionSlots, traffic: SessionTraffic, metrics: Metrics) {
    const sessions = { name: 'gateway_realtime_sessions', help: 'Sessions open or being dialled.', labelNames: [] }
    registerGauge(metrics, sessions, () => single(slots.taken))
    const labelNames = ['from']
    const events = { name: 'gateway_realtime_events_total', help: 'Messages on realtime sockets.', labelNames }
    registerCounter(metrics, events, () =>
      byLabel('from', { client: traffic.clientEvents, upstream: traffic.upstreamEvents }),
    )
    const bytes = { name: 'gateway_realtime_bytes_total', help: 'Bytes of those messages.', labelNames }
    registerCounter(metrics, bytes, () =>
      byLabel('from', { client: traffic.clientBytes, upstream: traffic.upstreamBytes }),
    )
  }
}

/** An upstream that has said yes; what is left to do is to tell the client. */
export interface OpenedSession {
  readonly call: RequestContext
  readonly model: string
  readonly channelId: string
  /** The channel's secret, or the caller's own bearer. */
  readonly credentials: string
  readonly upstream: RealtimeUpstream
  readonly slot: SessionSlot
}

/** Opens sessions: everything that can be refused is refused before the client's socket leaves HTTP. */
@Injectable()
export class RealtimeService {
  constructor(
    private readonly router: ProviderRouter,
    private readonly slots: SessionSlots,
  ) {}

  async open(opening: RealtimeOpening, call: RequestContext): Promise<UpgradeResponse> {
    const { model } = opening
    call.log.model = model
    const route = this.router.realtime(model, call.caller)
    const slot = this.slots.take(call.caller.revocation)
    try {
      // A dial costs nothing and opens nothing that lasts.
      const opened = await route.attempt(call, { repeatableOnceSent: true }, async (provider, context) => {
        const upstream = await provider.open(opening, context)
        return { call, model, channelId: context.channelId, credentials: context.credentials, upstream, slot }
      })
      return answerTo(opened)
    } catch (error) {
      slot.leave()
      throw error
    }
  }
}

function answerTo(opened: OpenedSession): UpgradeResponse {
  const { slot, upstream } = opened
  const abandon = (): void => {
    upstream.socket.terminate()
    slot.leave()
  }
  try {
    slot.assertOpen()
  } catch (error) {
    abandon()
    throw error
  }
  return new UpgradeResponse(opened, abandon)
}
