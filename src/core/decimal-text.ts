/** The longest that a program writes for a number has 24; a form's field may have thousands, and no pattern sees those. */
const LONGEST_CHARACTERS = 32
const DECIMAL = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i

/** The number that a text spells with decimal digits, as forms and queries do; NaN when it spells none. */
export const decimalOf = (text: unknown): number =>
  typeof text === 'string' && text.length <= LONGEST_CHARACTERS && DECIMAL.test(text) ? Number(text) : NaN
