/**
 * Characters of the encodings T1 and OT1 that are control characters elsewhere. TeX puts fonts without outlines into the file as
 * bitmaps, whose glyphs have no names but their codes (`a28`).
 */
const CONTROLS: ReadonlyMap<string, string> = new Map([
  ['\u000B', 'ff'],
  ['\u000C', 'fi'],
  ['\u000D', 'fl'],
  ['\u000E', 'ffi'],
  ['\u000F', 'ffl'],
  ['\u0010', '“'],
  ['\u0011', '”'],
  ['\u0012', '„'],
  ['\u0013', '«'],
  ['\u0014', '»'],
  ['\u0015', '–'],
  ['\u0016', '—'],
  ['\u0017', ''],
  ['\u0019', 'ı'],
  ['\u001B', 'ff'],
  ['\u001C', 'fi'],
  ['\u001D', 'fl'],
  ['\u001E', 'ffi'],
  ['\u001F', 'ffl'],
  ['\u007F', '-'],
])
/** Signs of the encoding TS1 between blanks; their codes are letters in T1. */
const SIGNS: ReadonlyMap<string, string> = new Map([
  ['\u0084', '†'],
  ['\u0085', '‡'],
  ['\u0088', '•'],
])
/** From code 128 on, letters of the encoding T1 where Unicode has control characters. */
const LETTERS = 'ĂĄĆČĎĚĘĞĹĽŁŃŇŊŐŔŘŚŠŞŤŢŰŮŸŹŽŻĲİđ§'
/** Letters of T1 whose code means another character in Unicode. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  ['×', 'Œ'],
  ['÷', 'œ'],
  ['ß', 'SS'],
  ['ÿ', 'ß'],
])
const LONE_SIGN = /(?<!\S)[\u0084\u0085\u0088](?!\S)/g
const TEX_CHARACTER = /[\p{Cc}×÷ßÿ]/gu

/** The text of a bitmap font of TeX. */
export function texText(text: string): string {
  return text
    .replace(LONE_SIGN, (sign) => SIGNS.get(sign) ?? sign)
    .replace(
      TEX_CHARACTER,
      (character) =>
        CONTROLS.get(character) ?? OTHERS.get(character) ?? LETTERS[character.charCodeAt(0) - 0x80] ?? character,
    )
}
