import type { Allowance, WorkReservation } from '../../src/core/quota.js'
import { Call } from '../../src/core/request-context.js'
import { UsageRecorder } from '../../src/core/usage-recorder.js'
import { ClientDialect } from '../../src/dialects/realtime/client-dialect.js'
import { RealtimeTraffic } from '../../src/realtime/realtime-traffic.js'
import { RealtimeSession } from '../../src/realtime/session.js'
import { DEFAULT_LIMITS, SECRET } from './realtime-session.js'
import type { SocketPairs } from './socket-pairs.js'

/** Limits that are counted elsewhere: every reservation waits until it is answered here. */
export class SlowAllowance implements Allowance {
  /** Of the reservations that are waited for, the oldest first: with a refusal, or without. */
  readonly answer: ((refusal?: string) => void)[] = []

  expect(): undefined {
    return undefined
  }

  reserve(): Promise<WorkReservation> {
    return new Promise((resolve) => {
      this.answer.push((refusal) => {
        resolve({
          refusal: refusal === undefined ? undefined : { limit: 'tokensPerMinute', message: refusal },
          settle: () => undefined,
        })
      })
    })
  }

  spend(): void {
    return undefined
  }

  spentLimit(): undefined {
    return undefined
  }

  noteRefusal(): void {
    return undefined
  }
}

class SilentRecorder extends UsageRecorder {
  readonly record = (): void => undefined
  readonly taskEnded = (): void => undefined
  readonly settleTask = (): undefined => undefined
}

export interface ReservingSession {
  readonly session: RealtimeSession
  readonly allowance: SlowAllowance
  /** The far ends. */
  readonly client: WebSocketEnd
  readonly upstream: WebSocketEnd
}

type WebSocketEnd = Awaited<ReturnType<SocketPairs['open']>>['client']

/** A session of somebody with such limits, over real sockets. */
export async function openReservingSession(pairs: SocketPairs): Promise<ReservingSession> {
  const [near, far] = [await pairs.open({ near: 'server' }), await pairs.open({ near: 'client' })]
  const call = new Call('req_1', 'GET', '/v1/realtime', performance.now())
  const allowance = new SlowAllowance()
  call.allowance = allowance
  const session = new RealtimeSession(
    near.server,
    { socket: far.client, dialect: 'beta' },
    {
      call,
      requestId: call.requestId,
      clientDialect: ClientDialect.of('beta'),
      limits: DEFAULT_LIMITS,
      recorder: new SilentRecorder(),
      traffic: new RealtimeTraffic(),
      keyId: 'team-a',
      model: 'gpt-realtime',
      channelId: 'p1-main',
      credentials: SECRET,
      logger: { info: () => undefined, warn: () => undefined },
    },
  )
  session.start()
  return { session, allowance, client: near.client, upstream: far.server }
}
