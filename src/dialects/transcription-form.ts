import type { MultipartField, UploadedFile } from '../core/spooled-file.js'
import { type EncodedMultipart, encodeMultipart, type MultipartPart } from '../upstream/multipart-encoder.js'

export interface TranscriptionForm {
  readonly file: UploadedFile
  /** Found in the bytes; the caller's own file name decides nothing. */
  readonly extension: string
  readonly contentType: string
  readonly fields: readonly MultipartField[]
}

/** Fields to set (replaced where they stand, otherwise added at the end) or, with undefined, to leave out. */
export type FormEdits = Readonly<Record<string, string | undefined>>

/**
 * The caller's form for an upstream: the same parts in the same order and spelling, the file under a safe generated
 * name whose extension fits the bytes, as many upstreams judge a file by its name.
 */
export function transcriptionForm(form: TranscriptionForm, edits: FormEdits): EncodedMultipart {
  const parts: MultipartPart[] = []
  const present = new Set<string>()
  for (const { name, value } of form.fields) {
    present.add(name)
    if (!Object.hasOwn(edits, name)) parts.push({ name, value })
    else if (edits[name] !== undefined) parts.push({ name, value: edits[name] })
  }
  const before = form.fields.slice(0, form.file.fieldIndex).filter(({ name }) => !isLeftOut(edits, name)).length
  parts.splice(before, 0, {
    name: 'file',
    filename: `audio.${form.extension}`,
    contentType: form.contentType,
    file: form.file.spool,
  })
  for (const [name, value] of Object.entries(edits)) {
    if (value !== undefined && !present.has(name)) parts.push({ name, value })
  }
  return encodeMultipart(parts)
}

const isLeftOut = (edits: FormEdits, name: string): boolean => Object.hasOwn(edits, name) && edits[name] === undefined
