import { setTimeout as pause } from 'node:timers/promises'
import { type RealtimeEvent, RealtimeProbe } from '../../support/realtime-probe.js'
import { Turns } from '../turns.js'
import type { Ending } from './http-caller.js'
import { ANSWER_FAULTS } from './session-faults.js'

/** `whole`: one spoken answer. `dropped`: the caller's connection breaks off in the middle of it. `slow`: hardly read. */
export type Manner = 'whole' | 'dropped' | 'slow'

const MODEL = 'gpt-realtime'
const SPOILT_EACH = 8
/** More than the gateway holds for a reader (`limits.realtimePauseBytes`) and the sockets on the way. */
const FLOOD = '#flood=4000000'
/** Short enough to be waited for, and so long that the gateway takes the session for idle: one in four. */
const SLOW_MS = { short: 300, long: 3000 }
/** Whatever becomes of a session, its upstream or the gateway has ended it by then, however busy the machine is. */
const PATIENCE_MS = 60_000
/** A handshake that hangs is given up so much later: by then it is told in `hung`. */
const GIVEN_UP_AFTER_MS = 1000
const REFUSED_UPGRADE = /response: 429/
const REFUSED_TURN = 'rate_limit_exceeded'

/**
 * Talks to one gateway. What hangs, which nothing may, is told in `hung`. `answered`: the answer came to its end and is
 * `completed`; a session in which it is anything else, or that breaks off, has `failed`.
 */
export class RealtimeTalk {
  readonly hung: Manner[] = []
  private readonly faults = new Turns(ANSWER_FAULTS, SPOILT_EACH)
  private readonly pauses = new Turns([SLOW_MS.long], 4)

  constructor(
    private readonly url: string,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  /** Never rejects. */
  async hold(key: string, manner: Manner): Promise<Ending> {
    const { url, patienceMs } = this
    let probe: RealtimeProbe | undefined
    const watch = setTimeout(() => {
      this.hung.push(manner)
      probe?.socket.terminate()
    }, patienceMs)
    try {
      const handshakeTimeoutMs = patienceMs + GIVEN_UP_AFTER_MS
      probe = await RealtimeProbe.open({ url, key, model: MODEL, handshakeTimeoutMs })
      await this.ask(probe, manner)
      return await this.hear(probe, manner)
    } catch (error) {
      return REFUSED_UPGRADE.test(String(error)) || probe?.rest().some(isLimit) === true ? 'limited' : 'failed'
    } finally {
      clearTimeout(watch)
      await probe?.close()
    }
  }

  private async ask(probe: RealtimeProbe, manner: Manner): Promise<void> {
    await probe.until('session.created')
    const text = manner === 'slow' ? FLOOD : `Hello there. ${this.faultOf(manner)}`
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
    probe.send({ type: 'conversation.item.create', item })
    probe.send({ type: 'response.create' })
  }

  private faultOf(manner: Manner): string {
    return manner === 'whole' ? (this.faults.next() ?? '') : ''
  }

  private async hear(probe: RealtimeProbe, manner: Manner): Promise<Ending> {
    await probe.until('response.created')
    if (manner === 'dropped') return 'left'
    if (manner === 'slow') {
      probe.socket.pause()
      await pause(this.pauses.next() ?? SLOW_MS.short)
      probe.socket.resume()
    }
    const done = await probe.next('response.done')
    return (done['response'] as RealtimeEvent | undefined)?.['status'] === 'completed' ? 'answered' : 'failed'
  }
}

/** What a session is told whose key has nothing left: it goes on, and does no further work. */
const isLimit = ({ error }: RealtimeEvent): boolean => (error as RealtimeEvent | undefined)?.['code'] === REFUSED_TURN
