import iconv from 'iconv-lite'

/**
 * Labels of the wild that the WHATWG list lacks, and labels that lie: gb2312 and gbk files hold characters of gb18030
 * only, and latin-1 is windows-1252 wherever it is really used.
 */
const ALIASES: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    gbk: 'gb18030',
    cp936: 'gb18030',
    ms936: 'gb18030',
    'windows-936': 'gb18030',
    cp949: 'euc-kr',
    ms949: 'euc-kr',
    uhc: 'euc-kr',
    cp932: 'shift_jis',
    ms932: 'shift_jis',
    cp950: 'big5',
    'utf-8-sig': 'utf-8',
    utf8mb4: 'utf-8',
    utf16: 'utf-16le',
    latin9: 'iso-8859-15',
    'x-user-defined': 'windows-1252',
    cp437: 'cp437',
    ibm437: 'cp437',
    cp850: 'cp850',
    ibm850: 'cp850',
    cp852: 'cp852',
    ibm852: 'cp852',
  }),
)

/**
 * What the decoder of Node 20 lacks or gets wrong: its euc-kr has no UHC, its big5 gives private-use characters for the
 * extensions of Hong Kong, and it knows no UTF-32 and no code pages of DOS.
 */
const ICONV_NAMES: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    big5: 'big5',
    'euc-kr': 'cp949',
    'iso-8859-16': 'iso-8859-16',
    'utf-32le': 'utf-32le',
    'utf-32be': 'utf-32be',
    cp437: 'cp437',
    cp850: 'cp850',
    cp852: 'cp852',
  }),
)

/** WHATWG: windows-1252, bytes 0x80 to 0x9F. */
const WINDOWS_1252_HIGH = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ'

/** A name that `decodeAs` takes, for a label as servers and pages write it; undefined for what nobody can decode. */
export function charsetOf(label: string): string | undefined {
  const name = label.trim().toLowerCase()
  if (!/^[a-z0-9][a-z0-9_:.()+-]{0,39}$/.test(name)) return undefined
  const alias = ALIASES.get(name)
  if (alias !== undefined) return alias
  if (ICONV_NAMES.has(name)) return name
  try {
    const standard = new TextDecoder(name).encoding
    return ALIASES.get(standard) ?? standard
  } catch {
    return undefined
  }
}

/** Decodes by a name from `charsetOf`; what is not valid becomes U+FFFD. A byte order mark is taken off. */
export function decodeAs(bytes: Uint8Array, charset: string): string {
  const text = decodeRaw(bytes, charset)
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

function decodeRaw(bytes: Uint8Array, charset: string): string {
  const iconvName = ICONV_NAMES.get(charset)
  if (iconvName !== undefined) return iconv.decode(bytes, iconvName, { stripBOM: false })
  if (charset === 'windows-1252') return decodeWindows1252(bytes)
  return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes)
}

/** Node 20 decodes windows-1252 as ISO 8859-1, which turns typographic quotes and the euro into control characters. */
function decodeWindows1252(bytes: Uint8Array): string {
  const latin1 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return latin1.replace(/[\u0080-\u009f]/g, (character) => WINDOWS_1252_HIGH[character.charCodeAt(0) - 0x80] ?? '')
}
