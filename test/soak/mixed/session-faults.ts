import type { SocketFault, SocketSessions } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { Turns } from '../turns.js'

const SPOILT_SESSION_EACH = 12

const HANDSHAKE_FAULTS: readonly SocketFault[] = [
  { kind: 'reset' },
  { kind: 'status', status: 503, body: '{"error":{"message":"busy"}}' },
  { kind: 'hang' },
  { kind: 'delay', ms: 300 },
]

/** Words of `src/sandbox/realtime/realtime-words.ts` that strike as soon as a session is open. */
const REALTIME_FAULTS: readonly SocketFault[] = [
  // Cut.
  '#drop',
  // Silent from the first event on.
  '#hang',
  // Malformed, which must not end a session.
  '#garbage',
  '#binary',
  '#closecode=1011',
  // Reads nothing for a while.
  '#deaf=500',
  '#expire',
  ...HANDSHAKE_FAULTS,
]

/** Words of `src/sandbox/p2/p2-words.ts`. */
const P2_FAULTS: readonly SocketFault[] = [
  ...['#cut', '#garbage', '#hang', '#errmid', '#textframe', '#closeearly', '#slow', '#errconcurrency'],
  ...HANDSHAKE_FAULTS,
]

/** What callers ask of the upstream, and it does in the middle of its answer; of the same words. */
export const ANSWER_FAULTS = ['#drop', '#stall', '#garbage', '#fail', '#binary', '#closecode=1013', '#incomplete']

/** Spoils one session in twelve of each, until the returned function is called. */
export function spoilSessions(live: SocketSessions, p2: SocketSessions): () => void {
  const stops = [spoil(live, REALTIME_FAULTS), spoil(p2, P2_FAULTS)]
  return () => {
    for (const stop of stops) stop()
  }
}

function spoil(sessions: SocketSessions, faults: readonly SocketFault[]): () => void {
  const turns = new Turns(faults, SPOILT_SESSION_EACH)
  // Whoever shakes hands now has been given its fault already: this one is for the next.
  const queue = (): void => {
    const fault = turns.next()
    if (fault !== undefined) sessions.queueFault(fault)
  }
  queue()
  sessions.on('handshake', queue)
  return () => {
    sessions.off('handshake', queue).reset()
  }
}
