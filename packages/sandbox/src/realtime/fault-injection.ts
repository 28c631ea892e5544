import type { RealtimeDialect } from './realtime-dialect.js'
import type { EventSender } from './server-events.js'
import { RealtimeRejection } from './validation.js'

/**
 * Magic words, in the text of the turn, in the instructions, or queued with `queueFault('#stall')`. They act on the next
 * answer; those marked * strike, when they are queued, as soon as the session is open. Words can be combined.
 *
 * | Word | What the client sees |
 * |---|---|
 * | `#mixed` | with a call: a message whose events interleave with those of the call |
 * | `#args={…}` | the arguments of the call, verbatim up to the end of the text |
 * | `#words=N` `#chunks=N` | an answer of N words or pieces |
 * | `#flood=N` | N bytes of audio in deltas, as fast as they are read |
 * | `#fail` `#fail=CODE` | `response.done` with status failed |
 * | `#incomplete` | the answer ends in the middle with status incomplete |
 * | `#stall` | the first two deltas, then silence |
 * | `#hang` * | no answer at all |
 * | `#drop` * | the connection is destroyed after two deltas |
 * | `#closecode=N` * | the same with a proper close; 1005 closes without a code, 1006 destroys |
 * | `#expire` * | the session expires after two deltas |
 * | `#garbage` * | a text frame that is no JSON |
 * | `#binary` * | a binary frame |
 * | `#unknown` * | an event of an unknown type |
 * | `#deaf=MS` * | nothing is read for this many milliseconds |
 */
const PLAIN_WORDS = [
  'mixed',
  'fail',
  'incomplete',
  'stall',
  'hang',
  'drop',
  'expire',
  'garbage',
  'binary',
  'unknown',
] as const

const NUMBERED_WORDS = ['flood', 'closecode', 'deaf', 'words', 'chunks'] as const

export type RealtimeWord = (typeof PLAIN_WORDS)[number]

export interface RealtimeWish {
  readonly words: ReadonlySet<RealtimeWord>
  readonly failCode: string
  readonly closeCode: number | undefined
  readonly floodBytes: number | undefined
  readonly deafMs: number | undefined
}

/** The faults that a text selects. Words that are not in the table are ordinary text. */
export function readWish(text: string): RealtimeWish {
  const names = Array.from(text.matchAll(/(?:^|\s)#([a-z]+)(?=[\s.,!?]|$)/g), (match) => match[1])
  const failCode = /(?:^|\s)#fail=([a-z_]+)(?=\s|$)/.exec(text)?.[1]
  const words = new Set(PLAIN_WORDS.filter((word) => names.includes(word)))
  if (failCode !== undefined) words.add('fail')
  const closeCode = numberAfter(text, 'closecode')
  return {
    words,
    failCode: failCode ?? 'server_error',
    closeCode: closeCode !== undefined && isCloseCode(closeCode) ? closeCode : undefined,
    floodBytes: numberAfter(text, 'flood'),
    deafMs: numberAfter(text, 'deaf'),
  }
}

/** The words of a queued fault that mean nothing: a slip of the test. */
export function unknownWords(text: string): readonly string[] {
  const plain = PLAIN_WORDS.map((word) => `#${word}`)
  const numbered = new RegExp(`^#(?:${NUMBERED_WORDS.join('|')})=\\d{1,12}$`)
  const isKnown = (word: string): boolean => plain.includes(word) || numbered.test(word) || /^#fail=[a-z_]+$/.test(word)
  return text.split(/\s+/).filter((word) => word !== '' && !isKnown(word))
}

function numberAfter(text: string, word: string): number | undefined {
  const digits = new RegExp(`(?:^|\\s)#${word}=(\\d{1,12})(?=\\s|$)`).exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** What RFC 6455 section 7.4 lets an endpoint send, and the two that stand for a missing code and a missing frame. */
function isCloseCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && code !== 1004) || (code >= 3000 && code <= 4999)
}

const GOING_AWAY = 1001
const NO_CODE = 1005
const NO_FRAME = 1006

/** What a session lasts at most. */
export const SESSION_MINUTES: Readonly<Record<RealtimeDialect, number>> = { ga: 60, beta: 30 }

/** Says that the session is over and closes it, as the upstream does at its maximum. */
export async function expire(sender: EventSender): Promise<void> {
  const message = `Your session hit the maximum duration of ${SESSION_MINUTES[sender.dialect]} minutes.`
  await sender.refuse(new RealtimeRejection('session_expired', message), null)
  sender.session.close(GOING_AWAY, message)
}

/** Ends the session in the way wished for, if any. Returns true when it is over. */
export async function endAsWished(sender: EventSender, { words, closeCode }: RealtimeWish): Promise<boolean> {
  if (words.has('drop') || closeCode === NO_FRAME) sender.session.breakOff()
  else if (closeCode === NO_CODE) sender.session.close()
  else if (closeCode !== undefined) sender.session.close(closeCode, `simulated close ${closeCode}`)
  else if (words.has('expire')) await expire(sender)
  else return false
  return true
}

/** Sends the frames wished for that no client can understand; a wish not to read is fulfilled meanwhile. */
export async function sendOddFrames(sender: EventSender, { words, deafMs }: RealtimeWish): Promise<void> {
  if (deafMs !== undefined) void sender.session.stopReading(deafMs)
  if (words.has('garbage')) await sender.session.send('{"type":"response.output_audio.delta","delta":')
  if (words.has('binary')) await sender.session.send(Buffer.from([0x00, 0xff, 0x7b, 0x7d]))
  if (words.has('unknown')) await sender.sendAs('response.telepathy.delta', { thought: 'unspoken', intensity: 0.5 })
}
