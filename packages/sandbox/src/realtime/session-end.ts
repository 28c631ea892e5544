import type { RealtimeWish } from './fault-injection.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { RealtimeRejection } from './realtime-rejection.js'
import type { EventSender } from './server-events.js'

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
