import type { Verdicts } from '../verdicts.js'
import { isAbsent, type Members } from './members.js'

/** What rules use of a request in the upstream's dialect while it is made. */
interface FieldDraft {
  readonly verdicts: Verdicts
}

/** Says what becomes of one field: translates it, or gives its verdict. What is null or absent is not shown to it. */
export type FieldRule<Draft extends FieldDraft> = (value: unknown, draft: Draft, name: string) => void

/** The fields of a request and what becomes of each; complete, as a test compares it with the types of the vendor's client. */
export type FieldTable<Draft extends FieldDraft> = Readonly<Record<string, FieldRule<Draft>>>

/** Applies each field's rule; fields that have none are dropped. Throws `invalid_request`. */
export function applyFieldTable<Draft extends FieldDraft>(
  fields: Members,
  table: FieldTable<Draft>,
  draft: Draft,
): void {
  for (const [name, value] of Object.entries(fields)) {
    if (isAbsent(value)) continue
    const rule = Object.hasOwn(table, name) ? table[name] : undefined
    if (rule === undefined) draft.verdicts.drop(name)
    else rule(value, draft, name)
  }
}

/** Read together with others; or it means nothing there, and nothing is lost by it. */
export const elsewhere = (): void => undefined

export const dropped: FieldRule<FieldDraft> = (_value, { verdicts }, name) => {
  verdicts.drop(name)
}

/** The same field. */
export const passed: FieldRule<FieldDraft & { set(name: string, value: unknown, callerPath: string): void }> = (
  value,
  draft,
  name,
) => {
  draft.set(name, value, name)
}

export const refused =
  (wayOut: string): FieldRule<FieldDraft> =>
  (_value, { verdicts }, name) => {
    verdicts.refuse(name, wayOut)
  }

/** Refuses every value but those that mean what the upstream does anyway. */
export const refusedUnless =
  (isHarmless: (value: unknown) => boolean, wayOut: string): FieldRule<FieldDraft> =>
  (value, { verdicts }, name) => {
    if (!isHarmless(value)) verdicts.refuse(name, wayOut)
  }
