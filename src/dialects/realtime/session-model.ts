import { FrameScan, splice } from '../../core/frame-scan.js'
import { isRecord } from '../../core/validation-rules.js'
import { type EventRefusal, refusal } from './event-refusal.js'

/**
 * A session keeps the model it was opened with, as it is the one that was authorised. Clients that repeat it use the
 * name they know it by, which need not be the upstream's: a repeated name is cut out, another one refused.
 */
export function judgeSessionModel(
  frame: Buffer,
  session: unknown,
  model: string | undefined,
  eventId: string | null,
): Buffer | EventRefusal {
  const named = isRecord(session) ? session['model'] : undefined
  if (model === undefined || named === undefined) return frame
  const kept = named === model ? withoutSessionModel(frame) : undefined
  return (
    kept ??
    refusal('invalid_value', "Invalid 'session.model': the model of an open session cannot be changed.", {
      param: 'session.model',
      eventId,
    })
  )
}

/** `undefined` when there are too many members to find all that name a model. */
function withoutSessionModel(frame: Buffer): Buffer | undefined {
  const session = FrameScan.of(frame)?.member('session')
  if (session === undefined) return undefined
  const offset = session.valueStart
  const cuts = FrameScan.of(frame.subarray(offset, session.valueEnd))?.removal('model')
  return cuts === undefined
    ? undefined
    : splice(
        frame,
        cuts.map(({ start, end, text }) => ({ start: start + offset, end: end + offset, text })),
      )
}
