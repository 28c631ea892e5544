import type { MarkedStretch } from './content-stream.js'
import type { PlacedText, Point } from './geometry.js'

/** Most distance of a copy, in font sizes; adjacent equal letters are further apart. */
const MAX_OFFSET = 0.15
const MAX_OFFSET_OF_WORDS = 0.3
const WORD_LENGTH = 4
/** Length of the prefix by which texts are grouped before they are compared. */
const KEY_LENGTH = 8
/** Least distance, in font sizes, of a copy that is drawn to make text bold. */
const MIN_BOLD_OFFSET = 0.005
const MAX_BOLD_OFFSET = 0.08

/** Removes text that is drawn again at nearly the same place, for boldness or a shadow. Linear but for crowded places. */
export function withoutCopies(texts: readonly PlacedText[]): PlacedText[] {
  const originals = new Map<string, SingleText[]>()
  const singles: SingleText[] = []
  for (const placed of texts) {
    const original = keysAround(placed)
      .flatMap((key) => originals.get(key) ?? [])
      .find((single) => isCopy(placed, single.placed))
    if (original !== undefined) {
      original.isDoubled ||= isBesides(placed, original.placed)
      continue
    }
    const single = { placed, isDoubled: false }
    singles.push(single)
    const key = keyAt(placed, 0, 0)
    const near = originals.get(key)
    if (near === undefined) originals.set(key, [single])
    else near.push(single)
  }
  return singles.map(({ placed, isDoubled }) => (isDoubled ? { ...placed, isDrawnBold: true } : placed))
}

interface SingleText {
  readonly placed: PlacedText
  isDoubled: boolean
}

function keysAround(placed: PlacedText): string[] {
  return [-1, 0, 1].flatMap((column) => [-1, 0, 1].map((row) => keyAt(placed, column, row)))
}

function keyAt({ text, x, y, fontSize }: PlacedText, column: number, row: number): string {
  return `${Math.round(x / fontSize) + column} ${Math.round(y / fontSize) + row} ${text.slice(0, KEY_LENGTH)}`
}

function isCopy(text: PlacedText, original: PlacedText): boolean {
  if (text.text !== original.text) return false
  const limit = (text.text.length < WORD_LENGTH ? MAX_OFFSET : MAX_OFFSET_OF_WORDS) * text.fontSize
  return Math.abs(text.x - original.x) <= limit && Math.abs(text.y - original.y) <= limit
}

function isBesides(text: PlacedText, original: PlacedText): boolean {
  const offset = Math.hypot(text.x - original.x, text.y - original.y) / text.fontSize
  return offset >= MIN_BOLD_OFFSET && offset <= MAX_BOLD_OFFSET
}

/** Spacing accents, and the combining ones that they stand for. */
const COMBINING: ReadonlyMap<string, string> = new Map([
  ['\u00A8', '\u0308'],
  ['\u00B4', '\u0301'],
  ['\u02C6', '\u0302'],
  ['\u02DC', '\u0303'],
  ['\u02C7', '\u030C'],
  ['\u02D8', '\u0306'],
  ['\u02D9', '\u0307'],
  ['\u02DA', '\u030A'],
  ['\u02DD', '\u030B'],
  ['\u00AF', '\u0304'],
  ['\u00B8', '\u0327'],
])
const WITHOUT_DOT: ReadonlyMap<string, string> = new Map([
  ['\u0131', 'i'],
  ['\u0237', 'j'],
])

const ACCENTS = [...COMBINING.keys()].join('')
const ACCENT_AND_LETTER = new RegExp(`([${ACCENTS}])(\\p{L})`, 'gu')
const ENDS_WITH_ACCENT = new RegExp(`[${ACCENTS}]$`, 'u')
const STARTS_WITH_LETTER = /^\p{L}/u
/** Rise of the accent of a capital, in font sizes. */
const MAX_RISE = 0.4

/** TeX draws an accent and then its letter; the two are joined where Unicode has such a letter. */
export function withAccents(text: string): string {
  return text.replace(ACCENT_AND_LETTER, (pair, accent: string, letter: string) => {
    const joined = `${WITHOUT_DOT.get(letter) ?? letter}${COMBINING.get(accent) ?? ''}`.normalize('NFC')
    return joined.length === 1 ? joined : pair
  })
}

/** Joins a piece that ends with an accent to the next one, whose first letter is under it. */
export function joinedAtAccents(texts: readonly PlacedText[]): PlacedText[] {
  const joined: PlacedText[] = []
  for (const text of texts) {
    const last = joined.at(-1)
    if (last !== undefined && isAccentOf(last, text)) {
      const length = Math.max(last.length, text.x + text.length - last.x)
      const y = last.text.length === 1 ? text.y : last.y
      joined[joined.length - 1] = { ...text, text: withAccents(last.text + text.text), x: last.x, y, length }
    } else joined.push(text)
  }
  return joined
}

function isAccentOf(last: PlacedText, text: PlacedText): boolean {
  if (!ENDS_WITH_ACCENT.test(last.text) || !STARTS_WITH_LETTER.test(text.text) || text.turn !== last.turn) return false
  const end = last.x + last.length
  return (
    Math.abs(text.y - last.y) <= MAX_RISE * text.fontSize &&
    text.x <= end + 0.05 * text.fontSize &&
    text.x >= end - text.fontSize
  )
}

/** Control characters, byte order mark, object and replacement character, non-characters, lone surrogates. */
const UNREADABLE = /[\p{Cc}\uFEFF\uFFFC\uFFFD\p{Noncharacter_Code_Point}\p{Cs}]+/gu
const PRIVATE_USE = /\p{Co}/gu
/** Least number, and share, of characters without meaning that make a page's text unreadable. */
const MIN_MEANINGLESS = 20
const MEANINGLESS_SHARE = 0.1
const SPACES = /[\u00A0\u2000-\u200A\u202F]/gu
/**
 * Compatibility characters to be replaced: ligatures (Latin, Armenian, Hebrew), Arabic presentation forms, and radicals that
 * fonts without a proper map use for ideographs. Others (², ½, ①, Ａ) have a meaning of their own and stay.
 */
const SHAPES = /[\uFB00-\uFB06\uFB13-\uFB17\uFB1D-\uFB4F\uFB50-\uFD3D\uFD50-\uFDF9\uFE80-\uFEFC\u2F00-\u2FD5]/gu

/**
 * The ideographs that radicals from U+2E80 on stand for (Unicode: EquivalentUnifiedIdeograph), where these are whole
 * characters of common fonts; a blank where there is none. Unicode's own normalisation knows two of them.
 */
const IDEOGRAPHS_OF_RADICALS =
  ' 厂  乙亻冂 刀刂卜 小小兀   巳幺彑 忄 扌攵 旡日月  民氵氺灬爫爫丬牛犭王疋目示礻竹糹纟罓罒   羊  耂肀聿肉臼艹艹艹虎衤覀西见角 讠贝 车辶辶辶邑钅長镸长门 阝雨青韦页风飞食 飠饣 马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀'
const RADICAL = /[\u2E80-\u2EF3]/g

function ideographOf(radical: string): string {
  const ideograph = IDEOGRAPHS_OF_RADICALS[radical.charCodeAt(0) - 0x2e80] ?? ' '
  return ideograph === ' ' ? radical.normalize('NFKC') : ideograph
}

/** Characters of word processors' symbol fonts at U+F000 + their own code: list markers, boxes, arrows. */
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
 * The text of a run in logical order, with letters for ligatures and presentation forms, and without characters that only
 * the font defines. Soft hyphens stay; they are needed to join lines.
 */
export function readableText(text: string): string {
  const readable = text
    .replace(UNREADABLE, '')
    .replace(PRIVATE_USE, known)
    .replace(SHAPES, (character) => character.normalize('NFKC'))
    .replace(RADICAL, ideographOf)
    .replace(SPACES, ' ')
  return withAccents(readable)
}

/** Counts the characters of a page, and those of them that only the font defines. */
export class CharacterTally {
  private characters = 0
  private meaningless = 0

  add(text: string): void {
    this.characters += text.length
    this.meaningless += text.length - text.replace(UNREADABLE, '').replace(PRIVATE_USE, known).length
  }

  get isUnreadable(): boolean {
    return this.meaningless >= Math.max(MIN_MEANINGLESS, this.characters * MEANINGLESS_SHARE)
  }
}

const known = (character: string): string => SYMBOL_GLYPHS.get(character) ?? ''

/** Tolerance around a stretch, in points. */
const TOLERANCE = 1
/** Least ratio of visible to invisible text; below it the invisible text is that of a scan, and is read. */
const SHOWN_FOR_EACH_HIDDEN = 0.5

/** Most stretches at one height that are searched. */
const MAX_STRETCHES_OF_LEVEL = 500

/**
 * Removes text of hidden layers, unless there is no other text, and invisible text beside visible text. Invisible text on a
 * page of pictures is the text of a scan, and stays. Text that is stroked as well as filled is returned as bold.
 */
export function shownText(texts: readonly PlacedText[], stretches: readonly MarkedStretch[]): PlacedText[] {
  if (stretches.length === 0) return [...texts]
  const marks = new StretchIndex(stretches)
  const seen = texts.filter((text) => !marks.has(text, 'hidden'))
  const layered = seen.length > 0 ? seen : texts
  const visible = layered.filter((text) => !marks.has(text, 'invisible'))
  const isScan = characters(visible) < SHOWN_FOR_EACH_HIDDEN * (characters(layered) - characters(visible))
  return (isScan ? layered : visible).map((text) => ({ ...text, isDrawnBold: marks.has(text, 'stroked') }))
}

function characters(texts: readonly PlacedText[]): number {
  return texts.reduce((sum, { text }) => sum + text.length, 0)
}

class StretchIndex {
  private readonly byLevel = new Map<number, MarkedStretch[]>()

  constructor(stretches: readonly MarkedStretch[]) {
    for (const stretch of stretches) {
      const level = Math.round(stretch.y)
      const others = this.byLevel.get(level) ?? []
      if (others.length < MAX_STRETCHES_OF_LEVEL) others.push(stretch)
      this.byLevel.set(level, others)
    }
  }

  has({ x, y }: PlacedText, kind: MarkedStretch['kind']): boolean {
    return [-1, 0, 1].some((shift) =>
      (this.byLevel.get(Math.round(y) + shift) ?? []).some(
        (stretch) =>
          stretch.kind === kind &&
          Math.abs(stretch.y - y) <= TOLERANCE &&
          x >= stretch.x1 - TOLERANCE &&
          x <= stretch.x2 + TOLERANCE,
      ),
    )
  }
}

const SOFT_HYPHEN = '\u00AD'
/** Most distance of a hyphen from the end of its word, and its width, in font sizes. */
const MAX_GAP = 0.35
const WIDTH = 0.33
/** Most line ends at one height that are searched. */
const MAX_HYPHENS_OF_LEVEL = 200

/**
 * Restores hyphens at the ends of lines: pdf.js leaves out a glyph that its font encodes as a soft hyphen, although the page
 * shows it.
 *
 * @param hyphens start positions of such glyphs on the displayed page
 */
export function withSoftHyphens(texts: readonly PlacedText[], hyphens: readonly Point[]): PlacedText[] {
  const byLevel = new Map<number, Point[]>()
  for (const hyphen of hyphens) {
    const level = Math.round(hyphen[1])
    const others = byLevel.get(level) ?? []
    if (others.length < MAX_HYPHENS_OF_LEVEL) others.push(hyphen)
    byLevel.set(level, others)
  }
  return texts.map((text) => {
    const near = [-1, 0, 1].flatMap((shift) => byLevel.get(Math.round(text.y) + shift) ?? [])
    return text.turn === 0 && near.some((hyphen) => isAtEnd(text, hyphen)) ? hyphenated(text) : text
  })
}

function isAtEnd({ x, y, length, fontSize }: PlacedText, [hyphenX, hyphenY]: Point): boolean {
  return Math.abs(x + length - hyphenX) <= MAX_GAP * fontSize && Math.abs(y - hyphenY) <= MAX_GAP * fontSize
}

function hyphenated(text: PlacedText): PlacedText {
  return { ...text, text: text.text + SOFT_HYPHEN, length: text.length + WIDTH * text.fontSize }
}
