import { readTree } from '../html/html-parser.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineMetadata,
  type EngineOutput,
  type EngineWarning,
  languageTag,
  NO_METADATA,
} from '../model/document.js'
import { decodeText } from '../text/charset.js'
import { escapeHtml } from '../text/escape-html.js'
import { alternativeText, lacking, OfficePackage, shortLine } from './office-package.js'
import { childElements, descendant, parseXml, textOf, type XmlElement } from './xml.js'

const NO_BOOK = 'The file is damaged: it is no complete EPUB book.'

/** Links within a book lead nowhere in Markdown: against this address they are none of the web. */
const WITHIN_BOOK = 'epub:///'

/**
 * An EPUB book: its chapters in the order of reading, without the table of contents. Links between chapters become text,
 * pictures their description.
 *
 * @throws EngineFault `broken`, `too_large`, `encrypted`
 */
export function readEpub(input: EngineInput, limits: EngineLimits): EngineOutput {
  const pack = new OfficePackage(input.bytes, limits)
  const path = packagePath(pack)
  const book = path === undefined ? undefined : partRoot(pack, path)
  if (path === undefined || book === undefined) throw new EngineFault('broken', NO_BOOK)
  const parts = chapterParts(book, path.slice(0, path.lastIndexOf('/') + 1))
  refuseProtected(pack, parts)
  const findings = { droppedPictures: 0, lostChapters: 0 }
  const chapters: string[] = []
  for (const part of parts) {
    const bytes = pack.read(part)
    if (bytes === undefined) findings.lostChapters += 1
    else chapters.push(chapterMarkdown(bytes, findings))
  }
  const warnings: EngineWarning[] = [
    ...lacking('pages_unread', findings.lostChapters, 'chapter is missing', 'chapters are missing'),
    ...lacking(
      'pictures_dropped',
      findings.droppedPictures,
      'picture has no description',
      'pictures have no description',
    ),
  ]
  return {
    kind: 'epub',
    metadata: { ...bookMetadata(book), warnings },
    html: '',
    markdown: chapters.filter((chapter) => chapter !== '').join('\n'),
    pages: 1,
  }
}

/** Path of the package document, which lists all parts (OCF 3.3, 4.2.6.3.1). */
function packagePath(pack: OfficePackage): string | undefined {
  const files = childElements(descendant(partRoot(pack, 'META-INF/container.xml'), 'rootfiles'), 'rootfile')
  return files[0]?.attributes['full-path']
}

function partRoot(pack: OfficePackage, part: string): XmlElement | undefined {
  const bytes = pack.read(part)
  return bytes && parseXml(bytes)
}

/** Parts of the spine in order. */
function chapterParts(book: XmlElement, folder: string): string[] {
  const items = new Map(childElements(descendant(book, 'manifest'), 'item').map((item) => [item.attributes.id, item]))
  return childElements(descendant(book, 'spine'), 'itemref').flatMap(({ attributes: { idref } }) => {
    const item = idref === undefined ? undefined : items.get(idref)
    const { href = '', properties = '', 'media-type': type = '' } = item?.attributes ?? {}
    const isContents = properties.split(/\s+/).includes('nav')
    return item === undefined || isContents || !/html/i.test(type) ? [] : [partPath(folder, href)]
  })
}

function partPath(folder: string, href: string): string {
  const url = new URL(folder.split('/').map(encodeURIComponent).join('/') + href.replace(/[?#].*$/s, ''), WITHIN_BOOK)
  try {
    return decodeURIComponent(url.pathname).slice(1)
  } catch {
    return url.pathname.slice(1)
  }
}

/** Fonts may be obfuscated; a book whose chapters are encrypted is protected. */
function refuseProtected(pack: OfficePackage, parts: readonly string[]): void {
  const chapters = new Set(parts)
  for (const data of childElements(partRoot(pack, 'META-INF/encryption.xml'))) {
    const uri = descendant(data, 'CipherData', 'CipherReference')?.attributes.URI ?? ''
    if (chapters.has(uri) || chapters.has(uri.replaceAll('%20', ' ')))
      throw new EngineFault('encrypted', 'The book is protected.')
  }
}

function bookMetadata(book: XmlElement): EngineMetadata {
  const metadata = descendant(book, 'metadata')
  const holders = [metadata, descendant(metadata, 'dc-metadata')]
  const all = (name: string): string[] =>
    holders.flatMap((holder) => childElements(holder, name).map((element) => shortLine(textOf(element))))
  return {
    ...NO_METADATA,
    title: all('title')[0] ?? '',
    // Descriptions of shops are HTML within text.
    description: shortLine((all('description')[0] ?? '').replaceAll(/<[^<>]*>/g, ' ')),
    keywords: all('subject').join(', '),
    language: languageTag(all('language')[0] ?? ''),
  }
}

function chapterMarkdown(bytes: Uint8Array, findings: { droppedPictures: number }): string {
  const xhtml = decodeText(bytes, '', { htmlMeta: true }).replaceAll(PICTURE, (tag) =>
    pictureText(tag, () => {
      findings.droppedPictures += 1
    }),
  )
  return htmlToMarkdown(readTree(xhtml, true).body, { baseUrl: WITHIN_BOOK })
}

/** Values of attributes hold no `<` in XML. */
const PICTURE = /<img[\s/](?:[^<>"']|"[^"<]*"|'[^'<]*'){0,10000}>/gi

/** An empty description says that the picture is decoration. */
function pictureText(tag: string, onDropped: () => void): string {
  const alt = /\salt\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)')/i.exec(tag)
  const text = alternativeText(alt?.[1] ?? alt?.[2])
  if (text === '' && (alt === null || (alt[1] ?? alt[2] ?? '').trim() !== '')) onDropped()
  return escapeHtml(text).replaceAll('&amp;', '&')
}
