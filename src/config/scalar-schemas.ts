import type { Schema } from './schema-schema.js'

/** A string that `parse` accepts; `parse` returns undefined for one it refuses. `rule` says what would be right. */
export function textAs<T>(rule: string, parse: (text: string) => T | undefined): Schema<T> {
  return {
    read(value, at) {
      if (typeof value === 'number' || typeof value === 'boolean') return at.fault('must be a string; put it in quotes')
      if (typeof value !== 'string') return at.fault('must be a string')
      return parse(value) ?? at.fault(rule)
    },
  }
}

/** A string that matches the whole of `pattern`. */
export function textMatching(pattern: RegExp, rule: string): Schema<string> {
  return textAs(rule, (text) => (pattern.test(text) ? text : undefined))
}

/** One word of a closed list. */
export function oneOf<const T extends string>(words: readonly T[]): Schema<T> {
  return textAs(`must be one of ${words.join(', ')}`, (text) => words.find((word) => word === text))
}

/** True or false; also as text from the environment. */
export const boolean: Schema<boolean> = {
  read(value, at) {
    if (value === true || value === 'true') return true
    return value === false || value === 'false' ? false : at.fault('must be true or false')
  },
}

/** An integer; also one that came as decimal text from the environment. */
export function integer({ min, max }: { readonly min: number; readonly max?: number }): Schema<number> {
  const rule = max === undefined ? `must be an integer ≥ ${min}` : `must be an integer from ${min} to ${max}`
  return {
    read(value, at) {
      const number = toNumber(value)
      const fits = Number.isSafeInteger(number) && number >= min && number <= (max ?? Number.MAX_SAFE_INTEGER)
      return fits ? number : at.fault(rule)
    },
  }
}

/** A finite number greater than 0; also one that came as decimal text from the environment. */
export const positiveNumber: Schema<number> = {
  read(value, at) {
    const number = toNumber(value)
    return Number.isFinite(number) && number > 0 ? number : at.fault('must be a number > 0')
  },
}

/** A number within a range, both ends included; also one that came as decimal text from the environment. */
export function numberFrom({ min, max }: { readonly min: number; readonly max: number }): Schema<number> {
  return {
    read(value, at) {
      const number = toNumber(value)
      return number >= min && number <= max ? number : at.fault(`must be a number from ${min} to ${max}`)
    },
  }
}

const SIGNED_DECIMAL = /^-?\d{1,16}(?:\.\d{1,16})?$/

function toNumber(value: unknown): number {
  if (typeof value === 'string' && SIGNED_DECIMAL.test(value)) return Number(value)
  return typeof value === 'number' ? value : Number.NaN
}
