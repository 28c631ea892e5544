const CJK_PATTERN =
  /[\u2e80-\u303f\u3040-\u30ff\u31c0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]|[\u{20000}-\u{3ffff}]/u
const RTL_PATTERN = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u
const LETTER_PATTERN = /\p{L}/u

/** Scripts that set no blank between words; Hangul does. */
export function isCjk(character: string): boolean {
  return character !== '' && CJK_PATTERN.test(character)
}

export function isRightToLeft(text: string): boolean {
  return RTL_PATTERN.test(text)
}

export function hasLetter(text: string): boolean {
  return LETTER_PATTERN.test(text)
}

export function firstCharacter(text: string): string {
  return /^./su.exec(text)?.[0] ?? ''
}

export function lastCharacter(text: string): string {
  return /.$/su.exec(text.slice(-2))?.[0] ?? ''
}

export function isLowerCase(character: string): boolean {
  return /^\p{Ll}$/u.test(character)
}

/** The sentence or the clause ends here, closing quotes and brackets passed over. */
export function endsSentence(text: string): boolean {
  return /[.!?:;…。！？：；．][\u0022\u0027\u2019\u201d\u00bb)\]」』）〉》】]*$/u.test(text)
}
