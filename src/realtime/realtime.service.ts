import { Injectable } from '@nestjs/common'
import type { Call } from '../core/request-context.js'
import type { RealtimeOpening, RealtimeUpstream } from '../providers/realtime.contract.js'
import { ProviderRouter } from '../routing/router.js'
import { UpgradeAnswer } from '../server/upgrade-answer.js'
import { RealtimeSeats, type Seat } from './realtime-seats.js'

/** An upstream that has said yes; what is left to do is to tell the client. */
export interface OpenedSession {
  readonly call: Call
  readonly model: string
  readonly channelId: string
  /** The channel's secret, or the caller's own bearer. */
  readonly credentials: string
  readonly upstream: RealtimeUpstream
  readonly seat: Seat
}

/** Opens sessions: everything that can be refused is refused before the client's socket leaves HTTP. */
@Injectable()
export class RealtimeService {
  constructor(
    private readonly router: ProviderRouter,
    private readonly seats: RealtimeSeats,
  ) {}

  async open(opening: RealtimeOpening, call: Call): Promise<UpgradeAnswer> {
    const { model } = opening
    call.log.model = model
    const route = this.router.realtime(model, call.caller)
    const seat = this.seats.take(call.caller.standing)
    try {
      // A dial costs nothing and opens nothing that lasts.
      const opened = await route.attempt(call, { repeatableOnceSent: true }, async (provider, context) => {
        const upstream = await provider.open(opening, context)
        return { call, model, channelId: context.channelId, credentials: context.credentials, upstream, seat }
      })
      return answerTo(opened)
    } catch (error) {
      seat.leave()
      throw error
    }
  }
}

function answerTo(opened: OpenedSession): UpgradeAnswer {
  const { seat, upstream } = opened
  const abandon = (): void => {
    upstream.socket.terminate()
    seat.leave()
  }
  try {
    seat.assertOpen()
  } catch (error) {
    abandon()
    throw error
  }
  return new UpgradeAnswer(opened, abandon)
}
