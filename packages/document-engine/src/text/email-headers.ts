import { decodeText } from './charset.js'

/** Header fields of a message or of a part of it: the first of each name, in lower case. */
export type MailHeaders = ReadonlyMap<string, string>

export interface MailEntity {
  readonly headers: MailHeaders
  readonly body: Uint8Array
}

const LINE_FEED = 0x0a
const MOST_FIELDS = 2000
const LONGEST_HEADER = 10_000

/** Divides a message at its first blank line (RFC 5322, 2.1). */
export function mailEntity(bytes: Uint8Array): MailEntity {
  const end = headerEnd(bytes)
  return { headers: readHeaders(bytes.subarray(0, end.head)), body: bytes.subarray(end.body) }
}

function headerEnd(bytes: Uint8Array): { head: number; body: number } {
  if (bytes[0] === LINE_FEED) return { head: 0, body: 1 }
  if (bytes[0] === 0x0d && bytes[1] === LINE_FEED) return { head: 0, body: 2 }
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) {
    if (bytes[at + 1] === LINE_FEED) return { head: at, body: at + 2 }
    if (bytes[at + 1] === 0x0d && bytes[at + 2] === LINE_FEED) return { head: at, body: at + 3 }
  }
  return { head: bytes.length, body: bytes.length }
}

function readHeaders(bytes: Uint8Array): MailHeaders {
  const headers = new Map<string, string>()
  let name = ''
  let isFirst = false
  for (const line of decodeText(bytes, '').split(/\r?\n/)) {
    const field = /^([!-9;-~]{1,80})[ \t]*:(.*)$/s.exec(line)
    if (/^[ \t]/.test(line)) {
      if (isFirst) headers.set(name, `${headers.get(name) ?? ''} ${line.trim()}`)
    } else if (field !== null && headers.size < MOST_FIELDS) {
      name = (field[1] ?? '').toLowerCase()
      isFirst = !headers.has(name)
      if (isFirst) headers.set(name, (field[2] ?? '').trim())
    } else isFirst = false
  }
  return headers
}

/** Text of a header with its encoded words (RFC 2047); blanks between two of these are no text. */
export function headerText(value: string): string {
  const joined = value.replaceAll(/(\?=)\s{1,80}(?==\?)/g, '$1')
  return joined.replaceAll(
    /=\?([^?\s]{1,40})\?([bq])\?([^?\s]*)\?=/gi,
    (_word, charset: string, encoding: string, text: string) => {
      const bytes =
        encoding.toLowerCase() === 'b' ? Buffer.from(text, 'base64') : quotedBytes(text.replaceAll('_', '=20'))
      return decodeText(bytes, `text/plain; charset=${charset.split('*', 1)[0] ?? ''}`)
    },
  )
}

/** Parameter of a header such as `boundary` or `filename`, in its plain, encoded or divided form (RFC 2231). */
export function headerParameter(value: string, name: string): string {
  const parts = new Map<number, string>()
  let charset = ''
  for (const [, key = '', quoted, plain] of value
    .slice(0, LONGEST_HEADER)
    .matchAll(/;\s{0,80}([\w*'-]{1,40})\s{0,9}=\s{0,9}(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/gs)) {
    const match = /^([^*]+)(?:\*(\d{1,3}))?(\*)?$/.exec(key.toLowerCase())
    if (match === null || match[1] !== name) continue
    let text = quoted?.replaceAll(/\\(.)/gs, '$1') ?? plain ?? ''
    if (match[3] !== undefined) {
      const encoded = /^([^']*)'[^']*'(.*)$/s.exec(text)
      if (encoded !== null) [charset, text] = [encoded[1] ?? '', encoded[2] ?? '']
      const bytes = quotedBytes(text.replaceAll('=', '=3D').replaceAll('%', '='))
      text = decodeText(bytes, charset === '' ? '' : `text/plain; charset=${charset}`)
    } else text = headerText(text)
    if (!parts.has(Number(match[2] ?? 0))) parts.set(Number(match[2] ?? 0), text)
  }
  return [...parts]
    .sort(([a], [b]) => a - b)
    .map(([, text]) => text)
    .join('')
}

/** Quoted-printable (RFC 2045, 6.7); what is no code stays as it is. */
export function quotedBytes(text: string): Uint8Array {
  const bytes = Buffer.alloc(text.length)
  let length = 0
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== '=') {
      bytes[length++] = text.charCodeAt(at)
      continue
    }
    const code = text.slice(at + 1, at + 3)
    const softBreak = /^[ \t]*\r?\n/.exec(text.slice(at + 1, at + 80))
    if (/^[0-9a-f]{2}$/i.test(code)) {
      bytes[length++] = Number.parseInt(code, 16)
      at += 2
    } else if (softBreak !== null) at += softBreak[0].length
    else bytes[length++] = 0x3d
  }
  return bytes.subarray(0, length)
}
