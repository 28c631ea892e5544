import { isAbsent, listAt, type Members, objectAt, optionalTextAt, textAt, wrongShape } from '../members.js'
import { type ChatPart, isMarked, textPart } from '../to-chat/chat-messages.js'
import { IMAGE_TYPES, WEB_URL } from '../to-messages/media-blocks.js'
import { type MemberTable, type ChatRequestDraft } from './request-draft.js'

type PartTranslation = (block: Members, path: string, draft: ChatRequestDraft) => ChatPart[]

const CACHED = { type: 'read', cache_control: 'read' } as const
const CACHE_CONTROL: MemberTable = { type: 'read', ttl: 'drop' }
const CITATIONS: MemberTable = { enabled: 'read' }

/** The members of the blocks that become parts, and of what stands in them. */
export const PART_MEMBERS = {
  text: { ...CACHED, text: 'read', citations: 'read' },
  image: { ...CACHED, source: 'read', transformations: 'drop' },
  document: { ...CACHED, source: 'read', citations: 'read', context: 'read', title: 'read' },
  search_result: { ...CACHED, content: 'read', source: 'read', title: 'read', citations: 'read' },
} as const satisfies Record<string, MemberTable>

const SERVER_TOOLS = "Only the model's own vendor runs its server tools; leave these blocks out of the conversation."

/** Blocks without a counterpart, and the way out. */
export const REFUSED_BLOCKS: Readonly<Record<string, string>> = {
  server_tool_use: SERVER_TOOLS,
  web_search_tool_result: SERVER_TOOLS,
  web_fetch_tool_result: SERVER_TOOLS,
  code_execution_tool_result: SERVER_TOOLS,
  bash_code_execution_tool_result: SERVER_TOOLS,
  text_editor_code_execution_tool_result: SERVER_TOOLS,
  tool_search_tool_result: SERVER_TOOLS,
  container_upload: 'Send the file as a document with a base64 source.',
  tool_reference: 'Send the definition of the tool in tools.',
  browser_state: 'Describe it in a text block.',
}

const PARTS: Readonly<Record<keyof typeof PART_MEMBERS, PartTranslation>> = {
  text: textParts,
  image: imageParts,
  document: documentParts,
  search_result: searchResultParts,
}

/** The blocks that become parts. */
type PartBlock = keyof typeof PARTS

const isPartBlock = (type: string): type is PartBlock => Object.hasOwn(PARTS, type)

/** Parts for a block of one of the allowed types; others are refused. Empty texts have no part. */
export function partsOf(
  value: unknown,
  path: string,
  draft: ChatRequestDraft,
  allowed: readonly PartBlock[] = ['text', 'image', 'document', 'search_result'],
): ChatPart[] {
  const block = objectAt(value, path)
  const type = textAt(block['type'], `${path}.type`)
  if (!isPartBlock(type) || !allowed.includes(type)) refuseBlock(type, path, draft)
  draft.checkMembers(block, path, PART_MEMBERS[type])
  const parts = PARTS[type](block, path, draft)
  for (const part of parts) draft.from(path, part)
  markLast(parts, block, path, draft)
  return parts
}

/** Ends a cached prefix at the last part, where the caller's block has it end; a block without parts has no place for that. */
export function markLast(parts: readonly ChatPart[], block: Members, path: string, draft: ChatRequestDraft): void {
  const last = parts.at(-1)
  if (last === undefined) dropBreakpoint(block, path, draft)
  else Object.assign(last, breakpoint(block, path, draft))
}

export function refuseBlock(type: string, path: string, draft: ChatRequestDraft): never {
  const known = Object.hasOwn(REFUSED_BLOCKS, type) ? REFUSED_BLOCKS[type] : undefined
  draft.verdicts.refuse(`${path}.type`, known ?? 'A block of this type has no place here.')
}

/** Whether a cached prefix is to end here, at an upstream that takes marks; how long it lives is not the caller's choice there. */
function isCacheEnd({ cache_control: control }: Members, path: string, draft: ChatRequestDraft): boolean {
  if (isAbsent(control)) return false
  const controlPath = path === '' ? 'cache_control' : `${path}.cache_control`
  draft.checkMembers(objectAt(control, controlPath), controlPath, CACHE_CONTROL)
  return draft.facts.promptCacheBreakpoints
}

/** Members of a part at which a cached prefix ends. */
export const breakpoint = (members: Members, path: string, draft: ChatRequestDraft): object =>
  isCacheEnd(members, path, draft) ? { prompt_cache_breakpoint: { mode: 'explicit' } } : {}

/** For what becomes no part: chat has marks in parts alone. */
export function dropBreakpoint(members: Members, path: string, draft: ChatRequestDraft): void {
  if (isCacheEnd(members, path, draft)) draft.verdicts.drop(`${path}.cache_control`)
}

function textParts(block: Members, path: string, draft: ChatRequestDraft): ChatPart[] {
  const { citations } = block
  if (!isAbsent(citations) && listAt(citations, `${path}.citations`).length > 0) {
    draft.verdicts.drop(`${path}.citations`)
  }
  const text = textAt(block['text'], `${path}.text`)
  return text === '' ? [] : [textPart(text)]
}

const BASE64_SOURCE: MemberTable = { type: 'read', media_type: 'read', data: 'read' }
const URL_SOURCE: MemberTable = { type: 'read', url: 'read' }
const CONTENT_SOURCE: MemberTable = { type: 'read', content: 'read' }

type ImageSource = (source: Members, path: string, draft: ChatRequestDraft) => string

/** The URLs of images by the types of their sources; others are refused. */
export const IMAGE_SOURCES: Readonly<Record<string, ImageSource>> = { base64: dataUrl, url: webUrl }

function imageParts(block: Members, path: string, draft: ChatRequestDraft): ChatPart[] {
  if (!draft.facts.vision) draft.verdicts.refuse(`${path}.type`, 'The model does not read images.')
  const sourcePath = `${path}.source`
  const source = objectAt(block['source'], sourcePath)
  const type = textAt(source['type'], `${sourcePath}.type`)
  const urlOf = Object.hasOwn(IMAGE_SOURCES, type) ? IMAGE_SOURCES[type] : undefined
  if (urlOf === undefined) {
    draft.verdicts.refuse(`${sourcePath}.type`, 'Send the image with a base64 or url source.')
  }
  return [{ type: 'image_url', image_url: { url: urlOf(source, sourcePath, draft) } }]
}

function webUrl(source: Members, path: string, draft: ChatRequestDraft): string {
  draft.checkMembers(source, path, URL_SOURCE)
  const url = textAt(source['url'], `${path}.url`)
  if (!WEB_URL.test(url)) throw wrongShape(`${path}.url`, 'an http or https URL', url)
  return url
}

function dataUrl(source: Members, path: string, draft: ChatRequestDraft): string {
  draft.checkMembers(source, path, BASE64_SOURCE)
  const mediaType = textAt(source['media_type'], `${path}.media_type`)
  if (!IMAGE_TYPES.has(mediaType)) {
    draft.verdicts.refuse(`${path}.media_type`, 'Send the image as JPEG, PNG, GIF or WebP.')
  }
  return `data:${mediaType};base64,${textAt(source['data'], `${path}.data`)}`
}

/** A document and where it stands. */
interface DocumentBlock {
  readonly path: string
  readonly source: Members
  readonly title: string | undefined
  readonly context: string | undefined
}

type DocumentSource = (document: DocumentBlock, draft: ChatRequestDraft) => ChatPart[]

/** The parts of documents by the types of their sources; others are refused. */
export const DOCUMENT_SOURCES: Readonly<Record<string, DocumentSource>> = {
  base64: fileParts,
  text: documentText,
  content: contentParts,
}

function documentParts(block: Members, path: string, draft: ChatRequestDraft): ChatPart[] {
  refuseCitations(block, path, draft)
  const title = optionalTextAt(block['title'], `${path}.title`)
  const context = optionalTextAt(block['context'], `${path}.context`)
  const source = objectAt(block['source'], `${path}.source`)
  const type = textAt(source['type'], `${path}.source.type`)
  const partsFrom = Object.hasOwn(DOCUMENT_SOURCES, type) ? DOCUMENT_SOURCES[type] : undefined
  if (partsFrom === undefined) {
    draft.verdicts.refuse(`${path}.source.type`, 'Send the document with a base64, text or content source.')
  }
  return partsFrom({ path, source, title, context }, draft)
}

function fileParts(document: DocumentBlock, draft: ChatRequestDraft): ChatPart[] {
  const { path, source, title, context } = document
  draft.checkMembers(source, `${path}.source`, BASE64_SOURCE)
  if (!draft.facts.files)
    draft.verdicts.refuse(`${path}.type`, 'The model reads no files. Send the text of the document.')
  if (textAt(source['media_type'], `${path}.source.media_type`) !== 'application/pdf') {
    draft.verdicts.refuse(`${path}.source.media_type`, 'Send a PDF, or the text of the document.')
  }
  const data = `data:application/pdf;base64,${textAt(source['data'], `${path}.source.data`)}`
  const file: ChatPart = { type: 'file', file: { filename: title ?? 'document.pdf', file_data: data } }
  if (context === undefined) return [file]
  // A file has no other place for it, and the model was to know it.
  draft.verdicts.approximate(`${path}.context`)
  return [textPart(heading(document).join('\n')), file]
}

function documentText(document: DocumentBlock, draft: ChatRequestDraft): ChatPart[] {
  const { path, source } = document
  draft.checkMembers(source, `${path}.source`, BASE64_SOURCE)
  draft.verdicts.approximate(path)
  return [textPart([...heading(document), textAt(source['data'], `${path}.source.data`)].join('\n'))]
}

/** What is said of a document before its text. */
function heading({ title, context }: DocumentBlock): string[] {
  const lines = []
  if (title !== undefined) lines.push(`Document: ${title}`)
  if (context !== undefined) lines.push(`Context: ${context}`)
  return lines.length === 0 ? [] : [...lines, '']
}

function contentParts(document: DocumentBlock, draft: ChatRequestDraft): ChatPart[] {
  const { path, source } = document
  draft.checkMembers(source, `${path}.source`, CONTENT_SOURCE)
  const head = heading(document)
  if (head.length > 0) draft.verdicts.approximate(path)
  const before = head.length === 0 ? [] : [textPart(head.join('\n'))]
  const { content } = source
  if (typeof content === 'string') return [...before, ...(content === '' ? [] : [textPart(content)])]
  const contentPath = `${path}.source.content`
  const parts = listAt(content, contentPath).flatMap((block, index) =>
    partsOf(block, `${contentPath}[${index}]`, draft, ['text', 'image']),
  )
  return [...before, ...parts]
}

function searchResultParts(block: Members, path: string, draft: ChatRequestDraft): ChatPart[] {
  refuseCitations(block, path, draft)
  draft.verdicts.approximate(path)
  const texts = listAt(block['content'], `${path}.content`).flatMap((part, index) =>
    joinedTexts(part, `${path}.content[${index}]`, draft),
  )
  const head = [
    `Search result: ${textAt(block['title'], `${path}.title`)}`,
    `Source: ${textAt(block['source'], `${path}.source`)}`,
    '',
  ]
  return [textPart([...head, ...texts].join('\n'))]
}

/** Of a block that is joined with others to one part, within which no cached prefix can end. */
function joinedTexts(value: unknown, path: string, draft: ChatRequestDraft): readonly string[] {
  const parts = partsOf(value, path, draft, ['text'])
  if (parts.some(isMarked)) draft.verdicts.drop(`${path}.cache_control`)
  return parts.flatMap(({ text }) => text ?? [])
}

/** Citations are a promise: chat answers have none. */
function refuseCitations(block: Members, path: string, draft: ChatRequestDraft): void {
  if (isAbsent(block['citations'])) return
  const citations = objectAt(block['citations'], `${path}.citations`)
  draft.checkMembers(citations, `${path}.citations`, CITATIONS)
  if (citations['enabled'] === true) {
    draft.verdicts.refuse(`${path}.citations.enabled`, 'Send the block without citations.')
  }
}
