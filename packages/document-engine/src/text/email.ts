import { readTree } from '../html/html-parser.js'
import { collapseSpaces } from '../markdown/escape-markdown.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineOutput,
  type EngineWarning,
  languageTag,
  mediaTypeOf,
  NO_METADATA,
} from '../model/document.js'
import { decodeText } from './charset.js'
import { headerParameter, headerText, type MailEntity, mailEntity, quotedBytes } from './email-headers.js'
import { escapeHtml } from './escape-html.js'

/** Most parts of a message, and levels of parts and of messages within. */
const MOST_PARTS = 1000
const DEEPEST = 16
const LONGEST_FIELD = 2048

interface Reading {
  readonly html: string[]
  readonly attachments: string[]
  parts: number
  /** Level of the heading of the next message. */
  level: number
  leftBytes: number
  isCut: boolean
}

/**
 * An e-mail message (RFC 5322): its subject as heading, who wrote it to whom and when, and its text, of HTML where it has both.
 * Attachments are named and not read; nothing is fetched.
 *
 * @throws EngineFault `too_large`
 */
export function readEmail(input: EngineInput, limits: EngineLimits): EngineOutput {
  // The line before the headers in files of many messages.
  const start = /^From [^\n]{0,1000}\n/.exec(Buffer.from(input.bytes.subarray(0, 1024)).toString('latin1'))
  const message = mailEntity(input.bytes.subarray(start?.[0].length ?? 0))
  const reading: Reading = {
    html: [],
    attachments: [],
    parts: 0,
    level: 1,
    leftBytes: limits.decodedBytes,
    isCut: false,
  }
  readMessage(message, reading, 0)
  const { attachments, html, isCut } = reading
  if (attachments.length > 0) html.push(`<p><b>Attachments:</b> ${attachments.map(escapeHtml).join(', ')}</p>`)
  const names = attachments.slice(0, 10).join(', ')
  const warnings: EngineWarning[] = [
    ...(attachments.length === 0
      ? []
      : [
          {
            code: 'attachments_unread' as const,
            message: `${attachments.length === 1 ? 'One attachment is' : `${attachments.length} attachments are`} not read: ${names}.`,
          },
        ]),
    ...(isCut
      ? [{ code: 'content_cut' as const, message: 'Some parts of the message are not read: there are too many.' }]
      : []),
  ]
  const metadata = {
    ...NO_METADATA,
    title: fieldOf(message, 'subject'),
    keywords: fieldOf(message, 'keywords'),
    language: languageTag(fieldOf(message, 'content-language').split(',', 1)[0] ?? ''),
    warnings,
  }
  return {
    kind: 'email',
    metadata,
    html: '',
    markdown: htmlToMarkdown(readTree(html.join('')).body, { baseUrl: '' }),
    pages: 1,
  }
}

const SHOWN_FIELDS = ['From', 'To', 'Cc', 'Date']

function readMessage(message: MailEntity, reading: Reading, depth: number): void {
  const subject = fieldOf(message, 'subject')
  const { level } = reading
  if (subject !== '') reading.html.push(`<h${level}>${escapeHtml(subject)}</h${level}>`)
  reading.level = Math.min(6, level + 1)
  const fields = SHOWN_FIELDS.map((name) => [name, fieldOf(message, name.toLowerCase())] as const)
  const lines = fields
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `<b>${name}:</b> ${escapeHtml(value)}`)
  if (lines.length > 0) reading.html.push(`<p>${lines.join('<br>')}</p>`)
  readEntity(message, reading, depth)
  reading.level = level
}

function fieldOf({ headers }: MailEntity, name: string): string {
  return collapseSpaces(headerText(headers.get(name) ?? ''))
    .trim()
    .slice(0, LONGEST_FIELD)
}

function readEntity(entity: MailEntity, reading: Reading, depth: number): void {
  reading.parts += 1
  if (reading.parts > MOST_PARTS || depth > DEEPEST) {
    reading.isCut = true
    return
  }
  const contentType = entity.headers.get('content-type') ?? 'text/plain'
  const type = mediaTypeOf(contentType)
  if (type.startsWith('multipart/')) {
    const parts = partsOf(entity, headerParameter(contentType, 'boundary'))
    if (type === 'multipart/alternative') readAlternative(parts, reading, depth)
    else for (const part of parts) readEntity(part, reading, depth + 1)
    return
  }
  const disposition = entity.headers.get('content-disposition') ?? ''
  const name = headerParameter(disposition, 'filename') || headerParameter(contentType, 'name')
  const isText = (type === 'text/plain' || type === 'text/html') && !/^\s*attachment/i.test(disposition)
  if (type === 'message/rfc822' && !/^\s*attachment/i.test(disposition)) {
    readMessage(mailEntity(contentOf(entity, reading)), reading, depth + 1)
  } else if (!isText) addAttachment(entity, name, reading)
  else {
    const text = decodeText(contentOf(entity, reading), contentType, { htmlMeta: type === 'text/html' })
    reading.html.push(
      type === 'text/html'
        ? `<div>${bodyOf(text)}</div>`
        : plainHtml(text, /;\s{0,9}format\s{0,9}=\s{0,9}"?flowed/i.test(contentType)),
    )
  }
}

/** Of several forms of one text the last that can be read: the richest, as senders order them. */
function readAlternative(parts: readonly MailEntity[], reading: Reading, depth: number): void {
  for (const part of [...parts].reverse()) {
    const before = reading.html.length
    const attached = reading.attachments.length
    readEntity(part, reading, depth + 1)
    const text = reading.html
      .slice(before)
      .join('')
      .replaceAll(/<[^<>]*>|&nbsp;/g, '')
    if (text.trim() !== '') return
    reading.html.length = before
    reading.attachments.length = attached
  }
}

/** Pictures that the text shows belong to it. */
function addAttachment({ headers }: MailEntity, name: string, reading: Reading): void {
  const type = mediaTypeOf(headers.get('content-type'))
  const isShown =
    headers.has('content-id') &&
    type.startsWith('image/') &&
    !/^\s*attachment/i.test(headers.get('content-disposition') ?? '')
  if (isShown || /^application\/(?:pgp|pkcs7|x-pkcs7)-signature$/.test(type)) return
  reading.attachments.push(collapseSpaces(name).trim().slice(0, 200) || type)
}

/** The parts between the lines of a boundary (RFC 2046, 5.1.1). */
function partsOf({ body }: MailEntity, boundary: string): MailEntity[] {
  if (boundary === '') return []
  const view = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const delimiter = `--${boundary}`
  const parts: MailEntity[] = []
  let start: number | undefined
  for (let at = view.indexOf(delimiter); at !== -1; at = view.indexOf(delimiter, at + delimiter.length)) {
    if (at > 0 && view[at - 1] !== 0x0a) continue
    if (start !== undefined) parts.push(mailEntity(view.subarray(start, at)))
    const lineEnd = view.indexOf(0x0a, at)
    const isLast = view.subarray(at + delimiter.length, at + delimiter.length + 2).toString('latin1') === '--'
    if (isLast || lineEnd === -1 || parts.length > MOST_PARTS) return parts
    start = lineEnd + 1
  }
  if (start !== undefined) parts.push(mailEntity(view.subarray(start)))
  return parts
}

function contentOf({ headers, body }: MailEntity, reading: Reading): Uint8Array {
  reading.leftBytes -= body.length
  if (reading.leftBytes < 0) throw new EngineFault('too_large', 'The message is too large.')
  const encoding = (headers.get('content-transfer-encoding') ?? '').trim().toLowerCase()
  const text = (): string => Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  if (encoding === 'base64') return Buffer.from(text(), 'base64')
  return encoding === 'quoted-printable' ? quotedBytes(text()) : body
}

/** The page within its document, so that several of them follow one another. */
function bodyOf(html: string): string {
  return html.replaceAll(/<\/?(?:html|body)(?:\s[^<>]*)?>/gi, '').replaceAll(/<(?:title)\b[^<]*<\/title>/gi, '')
}

/** Plain text as paragraphs; `>` at the start of lines quotes. Lines of flowed text that end with a blank go on (RFC 3676). */
function plainHtml(text: string, isFlowed: boolean): string {
  const html: string[] = []
  let depth = 0
  let lines: string[] = []
  const endParagraph = (): void => {
    if (lines.length > 0) html.push(`<p>${lines.join('')}</p>`)
    lines = []
  }
  for (const line of text.split(/\r?\n/)) {
    const quotes = /^(?:> ?)*/.exec(line)?.[0] ?? ''
    const level = Math.min(DEEPEST, quotes.replaceAll(' ', '').length)
    const words = line.slice(quotes.length)
    if (level !== depth) {
      endParagraph()
      html.push(level > depth ? '<blockquote>'.repeat(level - depth) : '</blockquote>'.repeat(depth - level))
      depth = level
    }
    if (words.trim() === '') endParagraph()
    else
      lines.push(`${escapeHtml(words.trimEnd())}${isFlowed && words.endsWith(' ') && words !== '-- ' ? ' ' : '<br>'}`)
  }
  endParagraph()
  return html.join('') + '</blockquote>'.repeat(depth)
}
