import { RawObject } from '../../core/json-object.js'

/** The event with the object in that member changed; the very same frame when there is no such object. */
export function withObject(frame: Buffer, name: string, edit: (object: RawObject, event: RawObject) => void): Buffer {
  const event = RawObject.parse(frame)
  const object = event?.object(name)
  if (event === undefined || object === undefined) return frame
  edit(object, event)
  return event.toBuffer()
}

/** The event with that member changed and, if one is given, a new type; the very same frame when neither differs. */
export function withMember(frame: Buffer, name: string, edit: (value: Buffer) => Buffer, newType?: string): Buffer {
  const event = RawObject.parse(frame)
  const value = event?.get(name)
  const changed = value === undefined ? value : edit(value)
  if (event === undefined || (changed === value && newType === undefined)) return frame
  if (changed !== undefined) event.set(name, changed)
  if (newType !== undefined) event.setText('type', newType)
  return event.toBuffer()
}
