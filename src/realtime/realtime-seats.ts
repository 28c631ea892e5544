import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'
import { keyOver, type KeyStanding } from '../core/key-standing.js'
import { Readiness } from '../observability/readiness.js'

/** When a refused client may look again; by then some session has ended or another replica has taken over. */
const RETRY_AFTER_SECONDS = 5

/** What can happen to a session from outside. */
export interface Seated {
  /** The process is to end: it ends with the answer that is under way, at once where there is none. */
  finish(): void
  /** The process ends. */
  drain(): void
  /** The key that opened it works no more. */
  revoke(): void
}

/** A place among the sessions that may be open at once, taken before the upstream is dialled. */
export class Seat {
  /** Resolves when the seat is free again. */
  readonly left: Promise<void>
  private session: Seated | undefined
  private announceLeft: () => void = () => undefined
  private readonly forgetKey: (() => void) | undefined

  constructor(
    private readonly seats: Set<Seat>,
    private readonly readiness: Readiness,
    private readonly standing: KeyStanding | undefined,
  ) {
    seats.add(this)
    this.forgetKey = standing?.onOver(() => this.session?.revoke())
    this.left = new Promise((resolve) => {
      this.announceLeft = resolve
    })
  }

  /**
   * Throws `overloaded` once the gateway drains, `unauthorized` when the key has been revoked meanwhile: a session that
   * begins now would be closed at once.
   */
  assertOpen(): void {
    assertNotDraining(this.readiness)
    if (this.standing?.isOver === true) throw keyOver()
  }

  occupy(session: Seated): void {
    this.session = session
    if (this.readiness.isDraining) session.finish()
    if (this.standing?.isOver === true) session.revoke()
  }

  finish(): void {
    this.session?.finish()
  }

  drain(): void {
    this.session?.drain()
  }

  leave(): void {
    this.seats.delete(this)
    this.forgetKey?.()
    this.announceLeft()
  }
}

/**
 * Bounds how many sessions are open or being dialled. When the gateway drains they end: those with an answer under way with
 * that answer, at the latest when the grace time is over.
 */
@Injectable()
export class RealtimeSeats implements BeforeApplicationShutdown {
  private readonly seats = new Set<Seat>()

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
    await Promise.all([...this.seats].map((seat) => seat.left))
  }

  /** Sessions open or being dialled. */
  get taken(): number {
    return this.seats.size
  }

  /** For the holder of a key. Throws `overloaded` when all seats are taken, or when the gateway drains. */
  take(standing?: KeyStanding): Seat {
    if (this.seats.size >= this.store.current.limits.realtimeSessions) {
      throw overloaded('All realtime sessions of this gateway are in use. Please try again later.')
    }
    assertNotDraining(this.readiness)
    return new Seat(this.seats, this.readiness, standing)
  }

  private readonly finish = (): void => {
    for (const seat of [...this.seats]) seat.finish()
  }

  private readonly drain = (): void => {
    for (const seat of [...this.seats]) seat.drain()
  }
}

function assertNotDraining({ isDraining }: Readiness): void {
  if (isDraining) throw overloaded('The gateway shuts down. Please connect again.')
}

const overloaded = (message: string): GatewayError =>
  new GatewayError('overloaded', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
