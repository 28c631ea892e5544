import type { ExpectedUse, SpentLimit, TokensAndAudio, WorkReservation } from '../core/quota.js'
import type { HeldPoints, LimitAccount, ReservedName } from './limit-account.js'
import { resetMsOf } from './limit-errors.js'
import { spentMessage, windowRefusal } from './limit-refusal.js'
import type { Soon } from './limit-windows.js'
import { CallReservation } from './reservations.js'

const NOTHING: TokensAndAudio = { tokens: 0, audioSeconds: 0 }

/** Sound comes many times a second, and what is counted elsewhere is not asked for each of them. */
const LOOK_INTERVAL_MS = 1000

/** What the pieces of work of one session hold of its key's limits. None of it is left when the session is over. */
export class WorkReservations {
  private readonly open = new Set<CallReservation>()
  private isOver = false
  private lookedAtMs = -Infinity

  constructor(
    private readonly account: LimitAccount,
    /** Reserved for an answer that has no maximum. */
    private readonly expectedOutputTokens: number,
  ) {}

  make(use: ExpectedUse): Soon<WorkReservation> {
    const reservation = new CallReservation(this.account)
    reservation.plan({ ...use, isGuess: true }, this.expectedOutputTokens)
    const making = reservation.make()
    return making === undefined ? this.made(reservation) : making.then(() => this.made(reservation))
  }

  /** As `Allowance` has it. */
  spentLimit(): SpentLimit | undefined {
    const name = this.account.spentName(this.held)
    const state = name === undefined ? undefined : this.account.lastSeen(name)
    if (name === undefined || state === undefined) return undefined
    this.lookAgain(name)
    return { limit: name, message: spentMessage(name, this.account, resetMsOf(state)), endsAtMs: state.endsAtMs }
  }

  /** The session is over: what nobody has settled is given back, and so is what is still to come. */
  end(): void {
    this.isOver = true
    for (const reservation of this.open) reservation.settle(NOTHING)
    this.open.clear()
  }

  private made(reservation: CallReservation): WorkReservation {
    const { refused } = reservation
    const refusal = refused && {
      limit: refused,
      message: windowRefusal(refused, this.account, reservation.asked(refused)).message,
    }
    if (refused !== undefined || this.isOver) reservation.settle(NOTHING)
    else this.open.add(reservation)
    const settle = (use: TokensAndAudio): void => {
      this.open.delete(reservation)
      reservation.settle(use)
    }
    return { refusal, settle }
  }

  private readonly held: HeldPoints = (name, allowed) => {
    let points = 0
    for (const reservation of this.open) points += reservation.held(name, allowed)
    return points
  }

  /** What is missing may only be reserved, and be given back where this process does not see it. */
  private lookAgain(name: ReservedName): void {
    const nowMs = performance.now()
    if (nowMs - this.lookedAtMs < LOOK_INTERVAL_MS) return
    this.lookedAtMs = nowMs
    void this.account.peek(name)
  }
}
