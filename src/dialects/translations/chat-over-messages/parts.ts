import { isUtf8 } from 'node:buffer'
import { isStrictBase64 } from '../../../core/base64.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { ModelFacts } from '../../model-facts.js'
import type { Verdicts } from '../../verdicts.js'
import { dropUnknown, invalidShape, isAbsent, type Members, objectAt, optionalListAt, textAt } from '../members.js'

/** A content block of the upstream. */
export type Block = Record<string, unknown> & { readonly type: string }

/** A block, and the part of the caller that it was made of. */
export interface PlacedBlock {
  readonly block: Block
  readonly path: string
}

/** What the blocks of a whole request are made with. */
export interface PartContext {
  readonly facts: ModelFacts
  readonly verdicts: Verdicts
  readonly marks: CacheMarks
}

/** Upstreams refuse a request with more. */
const MAXIMUM_CACHE_MARKS = 4

/** Where the caller wants the prompt cache to be cut. */
export class CacheMarks {
  private readonly marks: PlacedBlock[] = []

  add(block: Block, path: string): void {
    this.marks.push({ block, path })
  }

  /**
   * Marks the last four: what stands before the last one is looked up in the cache as a whole, so that earlier marks only
   * matter to requests that went before.
   */
  apply(verdicts: Verdicts): void {
    const surplus = Math.max(0, this.marks.length - MAXIMUM_CACHE_MARKS)
    this.marks.forEach(({ block, path }, index) => {
      if (index < surplus) verdicts.drop(path)
      else block['cache_control'] = { type: 'ephemeral' }
    })
  }
}

/** undefined for a part that would be an empty block, which upstreams refuse. */
type PartReader = (part: Members, path: string, context: PartContext) => Block | undefined

/** By type; its members beside `type` and the mark of the cache. */
const PARTS: Readonly<Record<string, { readonly members: readonly string[]; readonly read: PartReader }>> = {
  text: { members: ['text'], read: ({ text }, path) => textBlock(textAt(text, `${path}.text`)) },
  refusal: { members: ['refusal'], read: ({ refusal }, path) => textBlock(textAt(refusal, `${path}.refusal`)) },
  image_url: { members: ['image_url'], read: image },
  file: { members: ['file'], read: file },
  input_audio: {
    members: ['input_audio'],
    read: (_part, path, { verdicts }) => verdicts.refuse(`${path}.type`, 'Send what was said as text.'),
  },
}

const KNOWN_MEMBERS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(PARTS).map(([type, { members }]) => [type, new Set(['type', 'prompt_cache_breakpoint', ...members])]),
)

/** Parts that a role may have. Pictures and files in results of tools go beyond the client's dialect; upstreams take them. */
export const PARTS_OF_ROLE = {
  system: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  tool: ['text', 'image_url', 'file'],
} as const

export type PartRole = keyof typeof PARTS_OF_ROLE

/** A text block; none for a text of white space alone, which upstreams refuse. */
export const textBlock = (text: string): Block | undefined => (text.trim() === '' ? undefined : { type: 'text', text })

/**
 * The blocks of a string or of parts, in their order. Marks of the cache are put on `marked` where that is given, as upstreams do not
 * take them within the results of tools.
 */
export function blocksOf(
  content: unknown,
  path: string,
  role: PartRole,
  context: PartContext,
  marked?: Block,
): PlacedBlock[] {
  if (typeof content === 'string') return placed(textBlock(content), path)
  return optionalListAt(content, path).flatMap((value, index) => {
    const partPath = `${path}[${index}]`
    const part = objectAt(value, partPath)
    const block = blockOf(part, partPath, role, context)
    mark(part['prompt_cache_breakpoint'], `${partPath}.prompt_cache_breakpoint`, marked ?? block, context)
    return placed(block, partPath)
  })
}

const placed = (block: Block | undefined, path: string): PlacedBlock[] => (block === undefined ? [] : [{ block, path }])

function blockOf(part: Members, path: string, role: PartRole, context: PartContext): Block | undefined {
  const type = textAt(part['type'], `${path}.type`)
  const types: readonly string[] = PARTS_OF_ROLE[role]
  const known = KNOWN_MEMBERS.get(type)
  if (known === undefined || !types.includes(type)) {
    return context.verdicts.refuse(`${path}.type`, `Send ${types.join(', ')}.`)
  }
  dropUnknown(part, known, path, context.verdicts)
  return PARTS[type]?.read(part, path, context)
}

function mark(breakpoint: unknown, path: string, block: Block | undefined, { marks, verdicts }: PartContext): void {
  if (isAbsent(breakpoint)) return
  if (block === undefined || !isRecord(breakpoint) || breakpoint['mode'] !== 'explicit') verdicts.drop(path)
  else marks.add(block, path)
}

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const IMAGE_MEMBERS: ReadonlySet<string> = new Set(['url', 'detail'])
const WEB_URL = /^https?:\/\//i

function image(part: Members, path: string, { facts, verdicts }: PartContext): Block {
  if (!facts.vision) verdicts.refuse(`${path}.type`, 'The model takes no images.')
  const picture = objectAt(part['image_url'], `${path}.image_url`)
  const urlPath = `${path}.image_url.url`
  const url = textAt(picture['url'], urlPath)
  dropUnknown(picture, IMAGE_MEMBERS, `${path}.image_url`, verdicts)
  // `auto` is what every upstream does that is told nothing.
  if (!isAbsent(picture['detail']) && picture['detail'] !== 'auto') verdicts.drop(`${path}.image_url.detail`)
  // Fetched by the upstream: the gateway never does.
  if (WEB_URL.test(url)) return { type: 'image', source: { type: 'url', url } }
  const { mediaType, base64 } = dataUrlAt(url, urlPath)
  const media_type = mediaType === 'image/jpg' ? 'image/jpeg' : mediaType
  if (!IMAGE_TYPES.has(media_type)) verdicts.refuse(urlPath, 'Send a JPEG, PNG, GIF or WebP image.')
  return { type: 'image', source: { type: 'base64', media_type, data: base64 } }
}

const FILE_MEMBERS: ReadonlySet<string> = new Set(['file_data', 'file_id', 'filename'])

function file(part: Members, path: string, { facts, verdicts }: PartContext): Block {
  if (!facts.files) verdicts.refuse(`${path}.type`, 'The model takes no files.')
  const document = objectAt(part['file'], `${path}.file`)
  dropUnknown(document, FILE_MEMBERS, `${path}.file`, verdicts)
  if (!isAbsent(document['file_id'])) verdicts.refuse(`${path}.file.file_id`, 'Send the file itself as file_data.')
  const dataPath = `${path}.file.file_data`
  const { mediaType, base64 } = dataUrlAt(textAt(document['file_data'], dataPath), dataPath)
  const filename = document['filename']
  const title = isAbsent(filename) ? '' : textAt(filename, `${path}.file.filename`)
  const titled = title === '' ? {} : { title }
  if (mediaType === 'application/pdf') {
    return { type: 'document', source: { type: 'base64', media_type: mediaType, data: base64 }, ...titled }
  }
  const bytes = Buffer.from(base64, 'base64')
  if (!mediaType.startsWith('text/') || !isUtf8(bytes)) verdicts.refuse(dataPath, 'Send a PDF, or a text in UTF-8.')
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: bytes.toString() }, ...titled }
}

interface DataUrl {
  /** In lower case, without parameters. */
  readonly mediaType: string
  readonly base64: string
}

const SCHEME = 'data:'
const BASE64_MARK = ';base64'

function dataUrlAt(url: string, path: string): DataUrl {
  const comma = url.indexOf(',')
  const head = url.slice(0, Math.max(0, comma)).toLowerCase()
  if (!head.startsWith(SCHEME) || !head.endsWith(BASE64_MARK)) throw invalidShape(path, 'a data: URL with Base64')
  const mediaType = head.slice(SCHEME.length, -BASE64_MARK.length).split(';')[0] ?? ''
  const data = url.slice(comma + 1)
  // Chat upstreams forgive line ends and missing padding; messages upstreams do not.
  const base64 = isStrictBase64(data) ? data : Buffer.from(data, 'base64').toString('base64')
  if (base64 === '') throw invalidShape(path, 'a data: URL with Base64')
  return { mediaType, base64 }
}
