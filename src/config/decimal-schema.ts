import type { Schema } from './schema-schema.js'

const DECIMAL = /^\d{1,12}(?:\.\d{1,12})?$/

/**
 * A decimal ≥ 0 as text, digit for digit as it was written: no float ever stands for it. A number of YAML is taken by its
 * shortest spelling, which is what was written for every decimal of up to 15 digits.
 */
export const decimal: Schema<string> = {
  read(value, at) {
    const text = typeof value === 'number' ? plainSpelling(value) : value
    return typeof text === 'string' && DECIMAL.test(text)
      ? text
      : at.fault('must be a decimal ≥ 0 with at most 12 digits before and 12 after the point')
  },
}

/** JavaScript spells small numbers with an exponent. */
function plainSpelling(value: number): string {
  const text = String(value)
  const [, mantissa = '', exponent] = /^([\d.]+)e-(\d+)$/.exec(text) ?? []
  return exponent === undefined ? text : `0.${'0'.repeat(Number(exponent) - 1)}${mantissa.replace('.', '')}`
}
