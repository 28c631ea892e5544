/** A field as the specification's event tables write it: `turn_detection.type` → string, (server_vad). */
export interface EventField {
  readonly path: string
  /** Absent where the table names no type. */
  readonly type: string | undefined
  readonly values: readonly string[]
}

const TYPES = ['string', 'integer', 'number', 'array', 'object']

/** Cuts at commas and semicolons that stand in no brackets. */
function pieces(text: string): string[] {
  const found: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at <= text.length; at++) {
    const sign = text[at] ?? ','
    if ('{('.includes(sign)) depth++
    if ('})'.includes(sign)) depth--
    if (depth > 0 || !',;'.includes(sign)) continue
    found.push(text.slice(start, at).trim())
    start = at + 1
  }
  return found.filter((piece) => piece !== '')
}

/** Reads a cell such as `event_id string; session {voice string, tools array}` or `delta: Base64 audio chunk`. */
export function eventFieldsOf(cell: string, prefix = ''): EventField[] {
  return pieces(cell).flatMap((piece) => {
    const [, name = '', rest = ''] = /^([\w.]+):?\s*(.*)$/s.exec(piece) ?? []
    const path = prefix + name
    const members = /^\{(.*)\}$/s.exec(rest)?.[1]
    if (members !== undefined) return [{ path, type: 'object', values: [] }, ...eventFieldsOf(members, `${path}.`)]
    const [word = ''] = rest.split(' ')
    const values = /\(([^)]*)\)/.exec(rest)?.[1]?.split(',') ?? []
    return [{ path, type: TYPES.includes(word) ? word : undefined, values: values.map((value) => value.trim()) }]
  })
}
