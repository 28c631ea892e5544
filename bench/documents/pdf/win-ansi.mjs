/** Characters of the corpus that WinAnsiEncoding has outside of ASCII and Latin-1. */
const CODES = { '•': 0x95, '–': 0x96, '—': 0x97, '“': 0x93, '”': 0x94, '‘': 0x91, '’': 0x92, '…': 0x85 }

export function winAnsiCode(character) {
  const code = CODES[character] ?? character.codePointAt(0)
  if (code > 0xff) throw new Error(`WinAnsiEncoding has no ${character}`)
  return code
}
