import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type Caller, keyRevoked, type KeyRevocation, sharerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import { FairShare } from '../core/fair-share.js'
import type { RequestContext } from '../core/request-context.js'
import { byLabel, Metrics, registerCounter, registerGauge, single } from '../observability/metrics.js'
import { Readiness } from '../observability/readiness.js'
import type { RealtimeOpening, RealtimeProvider, RealtimeUpstream } from '../providers/contract.js'
import { ProviderRouter, type Route, type TranscriptionModel } from '../routing/router.js'
import { UpgradeResponse } from '../server/upgrade.js'
import { type SessionOpening, SessionTraffic } from './session-context.js'

/** `Retry-After` of a refused client; by then a session has ended or another replica has taken over. */
const RETRY_AFTER_SECONDS = 5

/** What ends a session from outside. */
interface SlotHolder {
  /** Shutdown begins: the session ends after the response under way, at once without one. */
  finish(): void
  /** The grace time is over: the session ends at once. */
  drain(): void
  /** The key that opened the session has been revoked. */
  revoke(): void
}

/** One of the sessions that may be open at once; taken before the upstream is dialled. */
class SessionSlot {
  /** Resolves when the slot is free again. */
  readonly freed: Promise<void>
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
    this.freed = new Promise((resolve) => {
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

  free(): void {
    this.slots.delete(this)
    this.forgetKey?.()
    this.release()
  }
}

/**
 * Limits how many sessions are open or being dialled. At shutdown they end: those with a response under way after that
 * response, at the latest when the grace time is over.
 */
@Injectable()
export class SessionSlots implements BeforeApplicationShutdown {
  private readonly slots = new Set<SessionSlot>()

  readonly places: FairShare

  constructor(
    store: ConfigStore,
    private readonly readiness: Readiness,
  ) {
    this.places = new FairShare(() => {
      const { limits, admission } = store.current
      // A session lasts for up to an hour: a caller that comes meanwhile would wait for as long.
      return { total: limits.realtimeSessions, callerShare: admission.callerShare, mayExceedShare: false }
    })
    readiness.onDraining(this.finish)
    readiness.onGraceOver(this.drain)
  }

  /** Waits for every slot: a session records its usage after its client has disconnected. */
  async beforeApplicationShutdown(): Promise<void> {
    this.drain()
    await Promise.all([...this.slots].map((slot) => slot.freed))
  }

  /** Sessions open or being dialled. */
  get taken(): number {
    return this.slots.size
  }

  /** Takes a slot for a session of that caller. Throws `overloaded` when all, or its share, are taken, or during shutdown. */
  take(caller: Caller): SessionSlot {
    assertNotDraining(this.readiness)
    const sharer = sharerOf(caller)
    if (!this.places.take(sharer)) {
      throw overloaded('All realtime sessions of this gateway are in use. Please try again later.')
    }
    const slot = new SessionSlot(this.slots, this.readiness, caller.revocation)
    void slot.freed.then(() => {
      this.places.count(sharer, -1)
    })
    return slot
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

/** Metrics of open sessions and their traffic, kept apart from request metrics because a session's request ends hours later. */
@Injectable()
export class RealtimeMetrics {
  constructor(slots: SessionSlots, traffic: SessionTraffic, metrics: Metrics) {
    const sessions = { name: 'gateway_realtime_sessions', help: 'Sessions open or being dialled.', labelNames: [] }
    registerGauge(metrics, sessions, () => single(slots.taken))
    const refused = {
      name: 'gateway_realtime_share_refused_total',
      help: 'Sessions refused although there was room, as the caller had its share.',
      labelNames: [],
    }
    registerCounter(metrics, refused, () => single(slots.places.refused))
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

/** A session whose upstream has accepted the connection; the client's upgrade is still open. */
export interface OpenedSession extends SessionOpening {
  readonly upstream: RealtimeUpstream
  readonly slot: SessionSlot
}

/** Opens sessions. Everything that can be refused is refused before the client's socket is upgraded. */
@Injectable()
export class RealtimeService {
  constructor(
    private readonly router: ProviderRouter,
    private readonly slots: SessionSlots,
  ) {}

  async open(opening: RealtimeOpening, call: RequestContext): Promise<UpgradeResponse> {
    const { kind, model } = opening
    if (model !== undefined) call.log.model = model
    const route = this.routeFor(opening, call.caller)
    const slot = this.slots.take(call.caller)
    try {
      // Repeating a dial is safe: it costs nothing and creates nothing that lasts.
      const opened = await route.attempt(call, { canRetryAfterSend: true }, async (provider, context) => {
        const upstream = await provider.open(opening, context)
        const { channelId, credentials, modelMap } = context
        const transcriptionModel = (named: string): TranscriptionModel =>
          this.router.transcriptionModel(channelId, named)
        return { call, kind, model, modelMap, transcriptionModel, channelId, credentials, upstream, slot }
      })
      return upgradeResponseFor(opened)
    } catch (error) {
      slot.free()
      throw error
    }
  }

  private routeFor({ kind, model }: RealtimeOpening, caller: Caller): Route<RealtimeProvider> {
    if (model === undefined) return this.router.transcriptionWithoutModel(caller)
    return this.router.route(kind === 'transcription' ? 'realtime_transcription' : 'realtime', model, caller)
  }
}

function upgradeResponseFor(opened: OpenedSession): UpgradeResponse {
  const { slot, upstream } = opened
  const abandon = (): void => {
    upstream.socket.terminate()
    slot.free()
  }
  try {
    slot.assertOpen()
  } catch (error) {
    abandon()
    throw error
  }
  return new UpgradeResponse(opened, abandon)
}
