import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common'
import { GatewayError } from '../common/errors/gateway-error.js'
import { Readiness } from '../common/observability/readiness.js'
import { ConfigStore } from '../config/config-store.js'

/** When a refused client may look again; by then some session has ended or another replica has taken over. */
const RETRY_AFTER_SECONDS = 5

/** What a drain needs of a session. */
export interface Drainable {
  drain(): void
}

/** A place among the sessions that may be open at once, taken before the upstream is dialled. */
export class Seat {
  /** Resolves when the seat is free again. */
  readonly left: Promise<void>
  private session: Drainable | undefined
  private announceLeft: () => void = () => undefined

  constructor(
    private readonly seats: Set<Seat>,
    private readonly readiness: Readiness,
  ) {
    seats.add(this)
    this.left = new Promise((resolve) => {
      this.announceLeft = resolve
    })
  }

  /** Throws `overloaded` once the gateway drains: a session that begins now would be closed at once. */
  assertOpen(): void {
    assertNotDraining(this.readiness)
  }

  occupy(session: Drainable): void {
    this.session = session
    if (this.readiness.isDraining) session.drain()
  }

  drain(): void {
    this.session?.drain()
  }

  leave(): void {
    this.seats.delete(this)
    this.announceLeft()
  }
}

/** Bounds how many sessions are open or being dialled, and ends them all when the gateway drains. */
@Injectable()
export class RealtimeSeats implements BeforeApplicationShutdown {
  private readonly seats = new Set<Seat>()

  constructor(
    private readonly store: ConfigStore,
    private readonly readiness: Readiness,
  ) {
    readiness.onDraining(this.drain)
  }

  /** A session has still to account for itself when its client is gone already. */
  async beforeApplicationShutdown(): Promise<void> {
    this.drain()
    await Promise.all([...this.seats].map((seat) => seat.left))
  }

  /** Throws `overloaded` when all seats are taken, or when the gateway drains. */
  take(): Seat {
    if (this.seats.size >= this.store.current.limits.realtimeSessions) {
      throw overloaded('All realtime sessions of this gateway are in use. Please try again later.')
    }
    assertNotDraining(this.readiness)
    return new Seat(this.seats, this.readiness)
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
