import { withAccents } from './text-cleanup.js'

/** Control characters, byte order mark, object and replacement character, non-characters, lone surrogates. */
const UNREADABLE = /[\p{Cc}\uFEFF\uFFFC\uFFFD\p{Noncharacter_Code_Point}\p{Cs}]+/gu
const PRIVATE_USE = /\p{Co}/gu
const SPACES = /[\u00A0\u2000-\u200A\u202F]/gu
/**
 * Ligatures of Latin, Armenian, Hebrew; forms of Arabic letters in a word; radicals that fonts without a proper map put
 * in the place of the ideograph itself. All other compatibility characters (², ½, ①, Ａ) say something of their own.
 */
const SHAPES = /[\uFB00-\uFB06\uFB13-\uFB17\uFB1D-\uFB4F\uFB50-\uFD3D\uFD50-\uFDF9\uFE80-\uFEFC\u2F00-\u2FD5]/gu

/** What word processors' symbol fonts draw at U+F000 + their own code: list markers, boxes, arrows. */
const SYMBOL_GLYPHS: ReadonlyMap<string, string> = new Map([
  ['\uF0B7', '•'],
  ['\uF0A7', '▪'],
  ['\uF06C', '●'],
  ['\uF06E', '■'],
  ['\uF06F', '□'],
  ['\uF075', '◆'],
  ['\uF076', '❖'],
  ['\uF0A8', '☐'],
  ['\uF0D8', '➢'],
  ['\uF0E0', '→'],
  ['\uF0FC', '✓'],
  ['\uF0FB', '✗'],
  ['\uF0FE', '☑'],
  ['\uF02D', '–'],
])

/**
 * The text of a run, in logical order, as a reader wants it: letters for ligatures and shapes of letters, without
 * characters that mean nothing outside the font. Soft hyphens stay for whoever joins the lines.
 */
export function readableText(text: string): string {
  const readable = text
    .replace(UNREADABLE, '')
    .replace(PRIVATE_USE, (character) => SYMBOL_GLYPHS.get(character) ?? '')
    .replace(SHAPES, (character) => character.normalize('NFKC'))
    .replace(SPACES, ' ')
  return withAccents(readable)
}
