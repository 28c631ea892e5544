import { RawObject } from '../../core/json-object.js'
import type { RealtimeDialect } from './dialect.js'
import { sessionToGa, shownSessionToBeta } from './session-objects.js'

/**
 * `session.created` for a client that has not shown its dialect yet: the upstream's session as it came, and the other
 * dialect's keys behind it, so that either client can read it.
 */
export function sessionInBoth(frame: Buffer, upstream: RealtimeDialect): Buffer {
  const event = RawObject.parse(frame)
  const shown = event?.object('session')
  const other = RawObject.parse(event?.get('session'))
  if (event === undefined || shown === undefined || other === undefined) return frame
  if (upstream === 'ga') shownSessionToBeta(other, {})
  else sessionToGa(other)
  for (const name of other.names) {
    const value = other.get(name)
    if (value !== undefined && !shown.has(name)) shown.set(name, value)
  }
  return event.toBuffer()
}
