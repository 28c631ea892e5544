/** As vendors' own rules of thumb have it. */
const ASCII_PER_TOKEN = 4

const FIRST_BEYOND_ASCII = 0x80

/** Of a character that takes two units. */
const isSecondHalf = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

/** Roughly the tokens of a text: four ASCII characters, or one character of any other script, to a token. */
export function tokensOf(text: string): number {
  let ascii = 0
  let others = 0
  // By index, as texts of megabytes are counted while others wait.
  for (let position = 0; position < text.length; position++) {
    const unit = text.charCodeAt(position)
    if (unit < FIRST_BEYOND_ASCII) ascii++
    else if (!isSecondHalf(unit)) others++
  }
  return Math.ceil(ascii / ASCII_PER_TOKEN) + others
}
