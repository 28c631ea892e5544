import { codePoints } from '../../core/validation-rules.js'

/** `<#1.50#>`: a pause, which is not spoken. */
const PAUSE = /<#[^#<>]*#>/g
const HAN = /\p{Script=Han}/gu

/** Characters as P3 counts them: a Han character is two, a pause none. */
export function billedCharacters(text: string): number {
  const spoken = text.replace(PAUSE, '')
  return codePoints(spoken) + (spoken.match(HAN)?.length ?? 0)
}
