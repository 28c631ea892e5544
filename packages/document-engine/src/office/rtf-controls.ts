/** Charsets by the numbers that fonts give (RTF 1.9.1, font charset). */
export const FONT_CHARSETS: ReadonlyMap<number, string> = new Map([
  [0, 'windows-1252'],
  [77, 'macintosh'],
  [128, 'shift_jis'],
  [129, 'euc-kr'],
  [134, 'gb18030'],
  [136, 'big5'],
  [161, 'windows-1253'],
  [162, 'windows-1254'],
  [163, 'windows-1258'],
  [177, 'windows-1255'],
  [178, 'windows-1256'],
  [186, 'windows-1257'],
  [204, 'windows-1251'],
  [222, 'windows-874'],
  [238, 'windows-1250'],
  [255, 'cp437'],
])

/** Charset of a code page of Windows or DOS. */
export function charsetOfCodePage(page: number): string {
  if (page >= 1250 && page <= 1258) return `windows-${page}`
  return OTHER_CODE_PAGES.get(page) ?? 'windows-1252'
}

const OTHER_CODE_PAGES: ReadonlyMap<number, string> = new Map([
  [437, 'cp437'],
  [850, 'cp850'],
  [852, 'cp852'],
  [866, 'ibm866'],
  [874, 'windows-874'],
  [932, 'shift_jis'],
  [936, 'gb18030'],
  [949, 'euc-kr'],
  [950, 'big5'],
  [10000, 'macintosh'],
  [65001, 'utf-8'],
])

/** Control words and symbols that are characters. */
export const CHARACTERS: ReadonlyMap<string, string> = new Map([
  ['emdash', '—'],
  ['endash', '–'],
  ['lquote', '‘'],
  ['rquote', '’'],
  ['ldblquote', '“'],
  ['rdblquote', '”'],
  ['bullet', '•'],
  ['emspace', ' '],
  ['enspace', ' '],
  ['qmspace', ' '],
  ['tab', '\t'],
  ['~', '\u00a0'],
  ['_', '\u2011'],
  ['{', '{'],
  ['}', '}'],
  ['\\', '\\'],
])

/** Groups whose content is no text of the document. */
export const SKIPPED_GROUPS: ReadonlySet<string> = new Set(
  (
    'colortbl filetbl listtable listoverridetable rsidtbl revtbl generator themedata colorschememapping datastore latentstyles ' +
    'xmlnstbl pgdsctbl pgptbl mmathPr nonshppict sp sn sv objdata objclass objname objtime bkmkstart bkmkend atnid atnauthor atntime ' +
    'atnref annotation xe tc txe rxe docvar userprops fchars lchars ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn blipuid ' +
    'picprop pnseclvl background header headerl headerr headerf footer footerl footerr footerf private template formfield ' +
    'datafield wgrffmtfilter nonesttables pn'
  ).split(' '),
)

/** Groups marked as optional that hold text all the same. */
export const READ_OPTIONAL_GROUPS: ReadonlySet<string> = new Set(
  'shpinst shppict shptxt fldinst pntext footnote'.split(' '),
)

export interface RtfToken {
  readonly kind: 'open' | 'close' | 'control' | 'byte' | 'text'
  /** Control word or symbol; text as Latin-1. */
  readonly text: string
  /** Parameter of a control word, or the byte. */
  readonly value: number | undefined
}

const CONTROL =
  /\\(?:([a-z]{1,32})(-?\d{1,10})? ?|'([0-9a-f]{2})|(\r?\n|[^a-z]))|([{}])|([^\\{}\r\n][^\\{}\r\n]*)|[\r\n]|\\/giy

/** The tokens of a file in Latin-1; binary data is left out. Linear time. */
export function* rtfTokens(source: string): Generator<RtfToken> {
  const pattern = new RegExp(CONTROL)
  while (pattern.lastIndex < source.length) {
    const match = pattern.exec(source)
    if (match === null) return
    const [, word, parameter, code, symbol, brace, text] = match
    if (text !== undefined) yield { kind: 'text', text, value: undefined }
    else if (brace !== undefined) yield { kind: brace === '{' ? 'open' : 'close', text: brace, value: undefined }
    else if (code !== undefined) yield { kind: 'byte', text: '', value: Number.parseInt(code, 16) }
    else if (word === 'bin') pattern.lastIndex += Math.max(0, Number(parameter ?? 0))
    else if (word !== undefined) {
      yield { kind: 'control', text: word, value: parameter === undefined ? undefined : Number(parameter) }
    } else if (symbol !== undefined)
      yield { kind: 'control', text: /\n/.test(symbol) ? 'par' : symbol, value: undefined }
  }
}
