import {
  type AssistantTurn,
  type CallEntry,
  currentTurns,
  type Entry,
  hasCalls,
  type InstructionsTurn,
  type Reasoning,
  type Result,
  splitInstructions,
  type Turn,
} from '../responses/conversation.js'
import type { FilePart, ImagePart, Part, TextPart } from '../responses/parts.js'
import type { ResponsesDraft } from '../responses/request-draft.js'
import {
  type ChatMessage,
  type ChatPart,
  contentOf,
  textPart,
  toolMessage,
  toolParts,
} from '../to-chat/chat-messages.js'
import { openedThoughts } from './answer.js'

/** The conversation as chat writes it. */
export function chatMessages(turns: readonly Turn[], draft: ResponsesDraft): readonly ChatMessage[] {
  const messages = new ChatMessages(draft, new Set(currentTurns(turns)))
  for (const turn of draft.facts.systemRole === 'none' ? instructionsFirst(turns, draft) : turns) messages.add(turn)
  return messages.all
}

/** For upstreams that take one message of instructions, before the conversation. */
function instructionsFirst(turns: readonly Turn[], draft: ResponsesDraft): readonly Turn[] {
  const { instructions, rest } = splitInstructions(turns, true, draft)
  const [first] = instructions
  return first === undefined ? rest : [{ ...first, parts: instructions.flatMap(({ parts }) => parts) }, ...rest]
}

class ChatMessages {
  readonly all: ChatMessage[] = []

  /** `current`: the turns since a user spoke last. */
  constructor(
    private readonly draft: ResponsesDraft,
    private readonly current: ReadonlySet<Turn>,
  ) {}

  add(turn: Turn): void {
    if (turn.kind === 'instructions') this.addInstructions(turn)
    else if (turn.kind === 'user') this.push({ role: 'user', content: this.content(turn.parts) }, turn.path)
    else if (turn.kind === 'assistant') this.addAssistant(turn)
    else this.addResults(turn.results)
  }

  private push(message: ChatMessage, path: string): void {
    this.draft.paths.set(`messages.${this.all.length}`, path)
    this.all.push(message)
  }

  /** One role for all of them: there are upstreams that know only one. */
  private addInstructions({ parts, path }: InstructionsTurn): void {
    const role = this.draft.facts.systemRole === 'developer' ? 'developer' : 'system'
    this.push({ role, content: this.content(parts) }, path)
  }

  /** Several messages where the model said several things, but for its calls, which end a turn and must stand in one message. */
  private addAssistant(turn: AssistantTurn): void {
    let message: AssistantMessage | undefined
    for (const entry of turn.entries) {
      if (entry.kind === 'reasoning') continue
      const isNew =
        message === undefined || (entry.kind === 'said' && message.parts.length > 0 && message.calls.length === 0)
      if (message !== undefined && isNew) this.pushAssistant(message)
      if (message === undefined || isNew) message = { path: entry.path, parts: [], calls: [] }
      if (entry.kind === 'call') message.calls.push(entry)
      else message.parts.push(...this.textsOf(entry))
    }
    if (message === undefined) return
    this.pushAssistant(message, this.current.has(turn) && hasCalls(turn) ? this.thoughts(turn.entries) : {})
  }

  /** They become one text, within which no prefix can end. */
  private textsOf({ parts }: Extract<Entry, { kind: 'said' }>): readonly TextPart[] {
    for (const part of parts) if (part.isBreakpoint) this.dropMark(part)
    return parts.filter((part): part is TextPart => part.kind === 'text' || part.kind === 'refusal')
  }

  private pushAssistant({ path, parts, calls }: AssistantMessage, thoughts: object = {}): void {
    const place = `messages.${this.all.length}`
    calls.forEach((call, index) => {
      this.draft.paths.set(`${place}.tool_calls.${index}`, call.path)
    })
    const tools = calls.length === 0 ? {} : { tool_calls: calls.map(toolCall) }
    const content = parts.length === 0 && calls.length > 0 ? null : assistantContent(parts)
    this.push({ role: 'assistant', content, ...thoughts, ...tools }, path)
  }

  /** Upstreams that show what they think want it back while they call tools. */
  private thoughts(entries: readonly Entry[]): object {
    const { reasoningField } = this.draft.facts
    if (reasoningField === undefined) return {}
    const text = entries
      .filter((entry) => entry.kind === 'reasoning')
      .map((entry) => reasoningText(entry, this.draft))
      .join('')
    return text === '' ? {} : { [reasoningField]: text }
  }

  /** All results of a turn, then what in them a tool message cannot hold. */
  private addResults(results: readonly Result[]): void {
    const all: ChatPart[] = []
    for (const { path, callId, parts } of results) {
      const { texts, attachments } = toolParts(
        callId,
        parts.map((part) => this.part(part)),
      )
      if (attachments.length > 0) this.draft.verdicts.approximate(`${path}.output`)
      this.push(toolMessage(callId, texts), path)
      all.push(...attachments)
    }
    if (all.length > 0) this.push({ role: 'user', content: all }, results[0]?.path ?? 'input')
  }

  private content(parts: readonly Part[]): unknown {
    const place = `messages.${this.all.length}.content`
    const chatParts = parts.map((part, index) => {
      this.draft.paths.set(`${place}.${index}`, part.path)
      return this.part(part)
    })
    return contentOf(chatParts)
  }

  private part(part: Part): ChatPart {
    const mark = this.isMarked(part) ? { prompt_cache_breakpoint: { mode: 'explicit' } } : {}
    if (part.kind === 'image') return { type: 'image_url', image_url: this.imageUrl(part), ...mark }
    if (part.kind === 'file') return { type: 'file', file: this.file(part), ...mark }
    return { ...textPart(part.text), ...mark }
  }

  /** Only some models have marks, and only in parts. */
  private isMarked(part: Part): boolean {
    if (part.isBreakpoint && !this.draft.facts.promptCacheBreakpoints) this.dropMark(part)
    return part.isBreakpoint && this.draft.facts.promptCacheBreakpoints
  }

  private dropMark({ path }: Part): void {
    this.draft.verdicts.drop(`${path}.prompt_cache_breakpoint`)
  }

  private imageUrl({ url, detail, path }: ImagePart): object {
    if (detail !== 'original') return { url, detail }
    this.draft.verdicts.approximate(`${path}.detail`)
    return { url, detail: 'high' }
  }

  private file({ data, filename, path }: FilePart): object {
    if (data === undefined) {
      return this.draft.verdicts.refuse(`${path}.file_url`, 'Send the file itself as file_data.')
    }
    return { filename, file_data: data }
  }
}

interface AssistantMessage {
  readonly path: string
  readonly parts: TextPart[]
  readonly calls: CallEntry[]
}

/** One text, unless there is a refusal among them: it is a part of its own. */
function assistantContent(parts: readonly TextPart[]): unknown {
  if (parts.every(({ kind }) => kind === 'text')) return parts.map(({ text }) => text).join('')
  return parts.map(({ kind, text }) => (kind === 'refusal' ? { type: kind, refusal: text } : { type: kind, text }))
}

const toolCall = ({ isCustom, id, name, text }: CallEntry): object =>
  isCustom
    ? { id, type: 'custom', custom: { name, input: text } }
    : { id, type: 'function', function: { name, arguments: text } }

function reasoningText({ path, sealed, text }: Reasoning, { target, verdicts }: ResponsesDraft): string {
  const opened = sealed === undefined ? undefined : openedThoughts(sealed, target.seals)
  if (opened === undefined && text === '') verdicts.drop(sealed === undefined ? path : `${path}.encrypted_content`)
  return opened ?? text
}
