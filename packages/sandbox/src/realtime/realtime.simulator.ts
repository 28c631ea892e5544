import { ServedLedger } from '../server/served-ledger.js'
import { startSocketSimulator } from '../server/socket-simulator.js'
import type { SocketProtocol, SocketSimulator, SocketSimulatorOptions } from '../server/websocket-protocol.js'
import type { SocketSession } from '../server/websocket-session.js'
import { unknownWords } from './fault-injection.js'
import type { RealtimeContext } from './realtime-context.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { admitRealtime, modelOf, refusalAfterOpen } from './realtime-handshake.js'
import { RealtimeRecord } from './realtime-record.js'
import { RealtimeSession } from './realtime-session.js'
import { EventSender } from './server-events.js'
import { SESSION_MINUTES } from './session-end.js'

/** 15 MiB of audio in base64, and the JSON around it. */
export const MAXIMUM_EVENT_BYTES = 21 * 1024 * 1024

export interface RealtimeOptions {
  /** The only accepted key. Default: every key but `bad`. */
  readonly apiKey?: string
  readonly dialect: RealtimeDialect
  /** Where sessions note what they have served. Default: a ledger of their own. */
  readonly served?: ServedLedger
  /** What a wrong key gets: an HTTP 401 (default), or an error event and close 3000. Both have been seen. */
  readonly wrongKey?: 'handshake' | 'event'
  /** Pause before each delta in milliseconds, default 0. */
  readonly paceMs?: number
  /** Default 60 minutes (ga) or 30 (beta). */
  readonly sessionMaximumMs?: number
}

/** Sessions in detail; `recordOf` knows each as soon as it is open. */
export interface RealtimeRecords {
  readonly recordOf: (session: SocketSession | undefined) => RealtimeRecord
}

export interface RealtimeSimulatorOptions extends SocketSimulatorOptions, RealtimeOptions {}

export type RealtimeSimulator = SocketSimulator & RealtimeRecords

/** Starts the realtime upstream of one dialect: `GET /v1/realtime?model=…`. */
export async function startRealtimeSimulator(options: RealtimeSimulatorOptions): Promise<RealtimeSimulator> {
  const protocol = realtimeProtocol(options)
  const simulator = await startSocketSimulator(protocol, { maximumMessageBytes: MAXIMUM_EVENT_BYTES, ...options })
  return Object.assign(simulator, { recordOf: protocol.recordOf })
}

/** The protocol alone, for a server that has other things on its port. */
export function realtimeProtocol(options: RealtimeOptions): SocketProtocol & RealtimeRecords {
  const { dialect, served = new ServedLedger() } = options
  const context: RealtimeContext = {
    dialect,
    apiKey: options.apiKey,
    wrongKey: options.wrongKey ?? 'handshake',
    paceMs: options.paceMs ?? 0,
    sessionMaximumMs: options.sessionMaximumMs ?? SESSION_MINUTES[dialect] * 60_000,
  }
  const records = new WeakMap<SocketSession, RealtimeRecord>()
  return {
    admit: (session) => admitRealtime(session, context),
    converse: async (session) => {
      const record = new RealtimeRecord(dialect, modelOf(session.handshake), session.handshake.query, served)
      records.set(session, record)
      await converse(session, context, record)
    },
    recordOf: (session) => {
      const record = session === undefined ? undefined : records.get(session)
      if (record === undefined) throw new Error('this session never opened')
      return record
    },
  }
}

async function converse(session: SocketSession, context: RealtimeContext, record: RealtimeRecord): Promise<void> {
  const slips = unknownWords(session.faultWords)
  if (slips.length > 0) throw new Error(`queued fault knows no ${slips.join(' ')}`)
  const refusal = refusalAfterOpen(session.handshake, context)
  if (refusal === undefined) return new RealtimeSession(session, context, record).hold()
  await new EventSender(session, context.dialect, record).refuse(refusal.rejection, null)
  session.clientMayLeave = true
  session.close(refusal.closeCode, `${refusal.rejection.type}.${refusal.rejection.code}`)
}
