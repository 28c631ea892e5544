import { isRecord } from '../../../core/validation-rules.js'
import type { ModelFacts } from '../../model-facts.js'
import type { Verdicts } from '../../verdicts.js'
import {
  BREAKPOINT_MEMBERS,
  dropUnknown,
  isAbsent,
  type Members,
  objectAt,
  optionalListAt,
  optionalTextAt,
  textAt,
} from '../members.js'
import { type Block, type CacheMarks, type PlacedBlock, textBlock } from '../to-messages/blocks.js'
import { documentBlock, imageBlock, checkDetail } from '../to-messages/media-blocks.js'

/** What the blocks of a whole request are made with. */
export interface PartContext {
  readonly facts: ModelFacts
  readonly verdicts: Verdicts
  readonly marks: CacheMarks
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
const PARTS_OF_ROLE = {
  system: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  tool: ['text', 'image_url', 'file'],
} as const

type PartRole = keyof typeof PARTS_OF_ROLE

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
  if (block === undefined || !isRecord(breakpoint) || breakpoint['mode'] !== 'explicit') {
    verdicts.drop(path)
    return
  }
  dropUnknown(breakpoint, BREAKPOINT_MEMBERS, path, verdicts)
  marks.add(block, path)
}

const IMAGE_MEMBERS: ReadonlySet<string> = new Set(['url', 'detail'])

function image(part: Members, path: string, { facts, verdicts }: PartContext): Block {
  if (!facts.vision) verdicts.refuse(`${path}.type`, 'The model takes no images.')
  const picture = objectAt(part['image_url'], `${path}.image_url`)
  const urlPath = `${path}.image_url.url`
  const url = textAt(picture['url'], urlPath)
  dropUnknown(picture, IMAGE_MEMBERS, `${path}.image_url`, verdicts)
  checkDetail(picture['detail'], `${path}.image_url.detail`, verdicts)
  return imageBlock(url, urlPath, verdicts)
}

const FILE_MEMBERS: ReadonlySet<string> = new Set(['file_data', 'file_id', 'filename'])

function file(part: Members, path: string, { facts, verdicts }: PartContext): Block {
  if (!facts.files) verdicts.refuse(`${path}.type`, 'The model takes no files.')
  const document = objectAt(part['file'], `${path}.file`)
  dropUnknown(document, FILE_MEMBERS, `${path}.file`, verdicts)
  if (!isAbsent(document['file_id'])) verdicts.refuse(`${path}.file.file_id`, 'Send the file itself as file_data.')
  const dataPath = `${path}.file.file_data`
  const filename = optionalTextAt(document['filename'], `${path}.file.filename`)
  return documentBlock(textAt(document['file_data'], dataPath), filename, dataPath, verdicts)
}
