import { isUtf8 } from 'node:buffer'
import { isStrictBase64 } from '../../../core/base64.js'
import type { Verdicts } from '../../verdicts.js'
import type { FilePart, ImagePart, Part } from '../responses/parts.js'

/** A content block of the upstream. */
export type Block = Record<string, unknown> & { readonly type: string }

/** A block, and the caller's field that it was made of. */
export interface PlacedBlock {
  readonly block: Block
  readonly path: string
}

/** Upstreams refuse a request with more marks. */
const MAXIMUM_CACHE_MARKS = 4

/** Makes blocks of parts, and marks where the caller wants the prompt cache to be cut. */
export class BlockMaker {
  private readonly marks: PlacedBlock[] = []

  constructor(private readonly verdicts: Verdicts) {}

  /** Marks within the results of tools are put on the `result`, as upstreams do not take them there. */
  blocksOf(parts: readonly Part[], result?: Block): PlacedBlock[] {
    return parts.flatMap((part) => {
      const block = this.blockOf(part)
      if (part.isBreakpoint && (result ?? block) !== undefined) this.mark(result ?? block, part.path)
      return block === undefined ? [] : [{ block, path: part.path }]
    })
  }

  /**
   * Marks the last four: what stands before the last one is looked up in the cache as a whole, so that earlier ones matter only to
   * requests that went before.
   */
  applyMarks(): void {
    const surplus = Math.max(0, this.marks.length - MAXIMUM_CACHE_MARKS)
    this.marks.forEach(({ block, path }, index) => {
      if (index < surplus) this.verdicts.drop(`${path}.prompt_cache_breakpoint`)
      else block['cache_control'] = { type: 'ephemeral' }
    })
  }

  private mark(block: Block | undefined, path: string): void {
    if (block !== undefined) this.marks.push({ block, path })
  }

  private blockOf(part: Part): Block | undefined {
    if (part.kind === 'image') return imageBlock(part, this.verdicts)
    return part.kind === 'file' ? documentBlock(part, this.verdicts) : textBlock(part.text)
  }
}

/** None for a text of white space alone, which upstreams refuse. */
const textBlock = (text: string): Block | undefined => (text.trim() === '' ? undefined : { type: 'text', text })

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const WEB_URL = /^https?:\/\//i

function imageBlock({ url, detail, path }: ImagePart, verdicts: Verdicts): Block {
  // `auto` is what every upstream does that is told nothing.
  if (detail !== undefined && detail !== 'auto') verdicts.drop(`${path}.detail`)
  // Fetched by the upstream: the gateway never does.
  if (WEB_URL.test(url)) return { type: 'image', source: { type: 'url', url } }
  const { mediaType, base64 } = dataAt(url, `${path}.image_url`, verdicts)
  const media_type = mediaType === 'image/jpg' ? 'image/jpeg' : mediaType
  if (!IMAGE_TYPES.has(media_type)) verdicts.refuse(`${path}.image_url`, 'Send a JPEG, PNG, GIF or WebP image.')
  return { type: 'image', source: { type: 'base64', media_type, data: base64 } }
}

function documentBlock({ data, url, filename, path }: FilePart, verdicts: Verdicts): Block {
  const title = filename === undefined || filename === '' ? {} : { title: filename }
  if (data === undefined) return { type: 'document', source: { type: 'url', url }, ...title }
  const { mediaType, base64 } = dataAt(data, `${path}.file_data`, verdicts)
  if (mediaType === 'application/pdf') {
    return { type: 'document', source: { type: 'base64', media_type: mediaType, data: base64 }, ...title }
  }
  const bytes = Buffer.from(base64, 'base64')
  if (!mediaType.startsWith('text/') || !isUtf8(bytes)) {
    verdicts.refuse(`${path}.file_data`, 'Send a PDF, or a text in UTF-8.')
  }
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: bytes.toString() }, ...title }
}

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*;base64,/i

function dataAt(
  url: string,
  path: string,
  verdicts: Verdicts,
): { readonly mediaType: string; readonly base64: string } {
  const [head, mediaType = ''] = DATA_URL.exec(url) ?? []
  if (head === undefined) return verdicts.refuse(path, 'Send a data: URL with Base64.')
  const data = url.slice(head.length)
  // Line ends and missing padding are forgiven elsewhere, not there.
  const base64 = isStrictBase64(data) ? data : Buffer.from(data, 'base64').toString('base64')
  return { mediaType: mediaType.toLowerCase(), base64 }
}
