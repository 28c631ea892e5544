import { FrameScan, splice } from '../../core/frame-scan.js'
import { mapElements, RawObject } from '../../core/json-object.js'

type Names = ReadonlyMap<string, string>

const BETA_OBJECT = 'realtime.item'

const PARTS_TO_GA: Names = new Map([
  ['text', 'output_text'],
  ['audio', 'output_audio'],
])
const PARTS_TO_BETA: Names = new Map([
  ['output_text', 'text'],
  ['output_audio', 'audio'],
])

/** An item with the content types of GA, which differ in what the assistant said; the very same bytes otherwise. */
export function itemToGa(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  return parsed?.text('role') === 'assistant' && renameParts(parsed, PARTS_TO_GA) ? parsed.toBuffer() : item
}

/** An item with the content types of beta, on its way to an upstream. */
export function itemToBeta(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  return parsed !== undefined && renameParts(parsed, PARTS_TO_BETA) ? parsed.toBuffer() : item
}

/** The same for an item that a server shows: beta items name their kind of object. */
export function shownItemToBeta(item: Buffer): Buffer {
  const parsed = RawObject.parse(item)
  if (parsed === undefined) return item
  const isRenamed = renameParts(parsed, PARTS_TO_BETA)
  if (parsed.has('object')) return isRenamed ? parsed.toBuffer() : item
  parsed.setText('object', BETA_OBJECT)
  return parsed.toBuffer()
}

/** The `part` of a content part event: its type is `audio` or `text` in both dialects, but for some GA servers. */
export const partToBeta = (part: Buffer): Buffer => withNamedType(part, PARTS_TO_BETA)

/** True when a part was renamed. */
function renameParts(item: RawObject, names: Names): boolean {
  const content = item.get('content')
  if (content === undefined) return false
  const renamed = mapElements(content, (part) => withNamedType(part, names))
  if (renamed === content) return false
  item.set('content', renamed)
  return true
}

function withNamedType(part: Buffer, names: Names): Buffer {
  const type = FrameScan.of(part)?.type()
  const name = type === undefined ? undefined : names.get(type.type)
  if (type === undefined || name === undefined) return part
  return splice(part, [{ start: type.start, end: type.end, text: `"${name}"` }])
}
