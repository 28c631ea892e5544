import { FAULTED, type FaultList, fieldPath, itemPath } from './config-fault.js'

export interface ReadContext {
  readonly faults: FaultList
  readonly production: boolean
}

/** Where in the document a value stands; faults are reported through it. */
export class Cursor {
  constructor(
    readonly path: string,
    readonly context: ReadContext,
    /** The raw map the value is a part of. */
    readonly siblings: Readonly<Record<string, unknown>> = {},
  ) {}

  /** Reports a fault; returns its mark so that a reader can end with it. */
  fault(message: string): typeof FAULTED {
    this.context.faults.add(this.path === '' ? 'document' : this.path, message)
    return FAULTED
  }

  field(name: string, siblings: Readonly<Record<string, unknown>> = {}): Cursor {
    return new Cursor(fieldPath(this.path, name), this.context, siblings)
  }

  item(index: number): Cursor {
    return new Cursor(itemPath(this.path, index), this.context)
  }
}

/** Turns a raw value into a checked one. `fields`, `item` and `variants` let documentation tests walk the whole. */
export interface Schema<T> {
  /** Returns `FAULTED` after at least one fault was reported at or below `at`. */
  read(value: unknown, at: Cursor): T | typeof FAULTED
  readonly fields?: Readonly<Record<string, Field<unknown>>>
  readonly item?: Schema<unknown>
  readonly variants?: Readonly<Record<string, Schema<unknown>>>
}

export interface PresentField<T> {
  readonly presence: 'required' | 'defaulted'
  readonly schema: Schema<T>
  /** Raw value read in place of an absent one. */
  readonly fallback?: unknown
}

export interface OptionalField<T> {
  readonly presence: 'optional'
  readonly schema: Schema<T>
}

export type Field<T> = PresentField<T> | OptionalField<T>

export function required<T>(schema: Schema<T>): PresentField<T> {
  return { presence: 'required', schema }
}

export function optional<T>(schema: Schema<T>): OptionalField<T> {
  return { presence: 'optional', schema }
}

export function withDefault<T>(schema: Schema<T>, fallback: unknown): PresentField<T> {
  return { presence: 'defaulted', schema, fallback }
}

/** Reads through a schema unless the value's fault is known already. */
export function readValue<T>(schema: Schema<T>, value: unknown, at: Cursor): T | typeof FAULTED {
  return value === FAULTED ? FAULTED : schema.read(value, at)
}

/** YAML's empty value is no value: a key whose lines are all commented out is as good as absent. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined
}
