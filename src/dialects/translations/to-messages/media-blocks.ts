import { isUtf8 } from 'node:buffer'
import { isStrictBase64 } from '../../../core/base64.js'
import type { Verdicts } from '../../verdicts.js'
import { isAbsent } from '../members.js'
import type { Block } from './blocks.js'

/** Types of images that the messages dialect has. */
export const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
export const WEB_URL = /^https?:\/\//i

/** An image for its URL, which stands at `path`: fetched by the upstream, as the gateway never does, or with the data in it. */
export function imageBlock(url: string, path: string, verdicts: Verdicts): Block {
  if (WEB_URL.test(url)) return { type: 'image', source: { type: 'url', url } }
  const { mediaType, base64 } = dataUrlAt(url, path, verdicts)
  const media_type = mediaType === 'image/jpg' ? 'image/jpeg' : mediaType
  if (!IMAGE_TYPES.has(media_type)) verdicts.refuse(path, 'Send a JPEG, PNG, GIF or WebP image.')
  return { type: 'image', source: { type: 'base64', media_type, data: base64 } }
}

/** `auto` is the default of every upstream. */
export function checkDetail(detail: unknown, path: string, verdicts: Verdicts): void {
  if (!isAbsent(detail) && detail !== 'auto') verdicts.drop(path)
}

/** A document for a URL with its data, which stands at `path`. */
export function documentBlock(data: string, filename: string | undefined, path: string, verdicts: Verdicts): Block {
  const { mediaType, base64 } = dataUrlAt(data, path, verdicts)
  const title = titleOf(filename)
  if (mediaType === 'application/pdf') {
    return { type: 'document', source: { type: 'base64', media_type: mediaType, data: base64 }, ...title }
  }
  const bytes = Buffer.from(base64, 'base64')
  if (!mediaType.startsWith('text/') || !isUtf8(bytes)) verdicts.refuse(path, 'Send a PDF, or a text in UTF-8.')
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: bytes.toString() }, ...title }
}

/** A document that the upstream fetches. */
export const webDocumentBlock = (url: string | undefined, filename: string | undefined): Block => ({
  type: 'document',
  source: { type: 'url', url },
  ...titleOf(filename),
})

const titleOf = (filename = ''): object => (filename === '' ? {} : { title: filename })

interface DataUrl {
  /** In lower case, without parameters. */
  readonly mediaType: string
  readonly base64: string
}

const SCHEME = 'data:'
const BASE64_MARK = ';base64'

const DATA_URL_WANTED = 'Send a data: URL with Base64.'

function dataUrlAt(url: string, path: string, verdicts: Verdicts): DataUrl {
  const comma = url.indexOf(',')
  const head = url.slice(0, Math.max(0, comma)).toLowerCase()
  if (!head.startsWith(SCHEME) || !head.endsWith(BASE64_MARK)) verdicts.refuse(path, DATA_URL_WANTED)
  const mediaType = head.slice(SCHEME.length, -BASE64_MARK.length).split(';')[0] ?? ''
  const data = url.slice(comma + 1)
  // Other upstreams forgive line ends and missing padding; these do not.
  const base64 = isStrictBase64(data) ? data : Buffer.from(data, 'base64').toString('base64')
  if (base64 === '') verdicts.refuse(path, DATA_URL_WANTED)
  return { mediaType, base64 }
}
