import { quoted } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import { isAbsent, listAt, type Members, objectAt, textAt, wrongShape } from '../members.js'
import { type ChatMessage, type ChatPart, contentOf, isMarked, textPart } from '../to-chat/chat-messages.js'
import { breakpoint, dropBreakpoint, partsOf, refuseBlock } from './parts.js'
import { type MemberTable, type ChatRequestDraft } from './request-draft.js'
import { ToolResults } from './tool-results.js'

export const MESSAGE_MEMBERS: MemberTable = { role: 'read', content: 'read' }

const TOOLSET = { refused: 'Describe the tools of the set as custom tools.' }

/** The members of the blocks that only assistants have. */
export const ASSISTANT_MEMBERS = {
  thinking: { type: 'read', thinking: 'read', signature: 'read' },
  redacted_thinking: { type: 'read', data: 'read' },
  tool_use: {
    type: 'read',
    id: 'read',
    name: 'read',
    input: 'read',
    caller: 'read',
    cache_control: 'read',
    toolset_name: TOOLSET,
  },
} as const satisfies Record<string, MemberTable>

interface Entry {
  readonly index: number
  readonly message: Members
}

/** Messages of one role in a row, which this dialect takes for one turn. */
interface Run {
  readonly role: string
  readonly entries: Entry[]
}

/** The conversation of a messages request in the words of chat, instructions first. */
export function conversationOf(draft: ChatRequestDraft): ChatMessage[] {
  const runs = runsOf(draft)
  const conversation = new ChatConversation(draft, currentTurnStart(runs))
  runs.forEach((run, index) => {
    conversation.add(run, index)
  })
  return conversation.messages()
}

function runsOf({ source }: ChatRequestDraft): Run[] {
  const runs: Run[] = []
  listAt(source['messages'], 'messages').forEach((value, index) => {
    const message = objectAt(value, `messages[${index}]`)
    const role = textAt(message['role'], `messages[${index}].role`)
    const last = runs.at(-1)
    if (last?.role === role) last.entries.push({ index, message })
    else runs.push({ role, entries: [{ index, message }] })
  })
  return runs
}

/** The index of the last run in which the user said something without being asked by a tool. */
const currentTurnStart = (runs: readonly Run[]): number =>
  runs.findLastIndex(({ role, entries }) => role === 'user' && !entries.some(({ message }) => hasToolResult(message)))

const hasToolResult = ({ content }: Members): boolean =>
  Array.isArray(content) && content.some((block) => isRecord(block) && block['type'] === 'tool_result')

class ChatConversation {
  private readonly spoken: ChatMessage[] = []
  private readonly instructions: ChatPart[] = []
  private readonly results: ToolResults

  constructor(
    private readonly draft: ChatRequestDraft,
    private readonly currentTurnStart: number,
  ) {
    this.results = new ToolResults(draft)
  }

  add(run: Run, index: number): void {
    for (const entry of run.entries) this.draft.checkMembers(entry.message, pathOf(entry), MESSAGE_MEMBERS)
    if (run.role !== 'user') this.results.assertNoneMissing()
    if (run.role === 'user') this.addUser(run)
    else if (run.role === 'assistant') this.addAssistant(run, index > this.currentTurnStart)
    else if (run.role === 'system')
      run.entries.forEach((entry) => {
        this.addSystem(entry)
      })
    else throw wrongShape(`${pathOf(run.entries[0])}.role`, 'user, assistant or system', run.role)
  }

  messages(): ChatMessage[] {
    this.results.assertNoneMissing()
    const leading = this.leading()
    const messages = leading === undefined ? this.spoken : [leading, ...this.spoken]
    const last = this.spoken.at(-1)
    if (last?.role === 'assistant') this.refuseBeginning()
    if (last !== undefined) this.markEnd(last)
    return messages
  }

  /** Chat models begin anew, where these go on with the text: the caller would join what does not belong together. */
  private refuseBeginning(): void {
    const { messages } = this.draft.source
    if (this.draft.isCount || !Array.isArray(messages)) return
    const path = `messages[${messages.length - 1}]`
    this.draft.verdicts.refuse(path, 'The last message must be that of the user.')
  }

  private leading(): ChatMessage | undefined {
    const { source, facts } = this.draft
    const role = facts.systemRole === 'developer' ? 'developer' : 'system'
    const { system } = source
    const first = isAbsent(system) ? [] : this.instructionsIn(system, 'system')
    const parts = [...first, ...this.instructions]
    return parts.length === 0 ? undefined : this.draft.from('system', { role, content: contentOf(parts) })
  }

  private instructionsIn(content: unknown, path: string): ChatPart[] {
    if (typeof content === 'string') return content === '' ? [] : [textPart(content)]
    return listAt(content, path).flatMap((block, index) => partsOf(block, `${path}[${index}]`, this.draft, ['text']))
  }

  /** Instructions within the conversation, which not every model takes. */
  private addSystem(entry: Entry): void {
    const path = pathOf(entry)
    const parts = this.instructionsIn(entry.message['content'], `${path}.content`)
    if (parts.length === 0) return
    const role = this.draft.facts.systemRole
    if (role !== 'none') {
      this.spoken.push(this.draft.from(path, { role, content: contentOf(parts) }))
      return
    }
    this.draft.verdicts.approximate(`${path}.role`)
    this.instructions.push(...parts)
  }

  /** Chat upstreams want the results of all calls first, one message each, and nothing of the user between them. */
  private addUser({ entries }: Run): void {
    const said = entries.map((entry) => this.userMessage(entry))
    this.spoken.push(...this.results.take())
    for (const message of said) if (message !== undefined) this.spoken.push(message)
  }

  private userMessage(entry: Entry): ChatMessage | undefined {
    const { content } = entry.message
    const path = pathOf(entry)
    if (typeof content === 'string') {
      return content === '' ? undefined : this.draft.from(path, { role: 'user', content })
    }
    const parts: ChatPart[] = []
    listAt(content, `${path}.content`).forEach((value, index) => {
      const blockPath = `${path}.content[${index}]`
      const block = objectAt(value, blockPath)
      if (block['type'] === 'tool_result') this.results.add(block, blockPath)
      else parts.push(...partsOf(block, blockPath, this.draft))
    })
    return parts.length === 0 ? undefined : this.draft.from(path, { role: 'user', content: contentOf(parts) })
  }

  private addAssistant({ entries }: Run, isCurrentTurn: boolean): void {
    const turn = new AssistantTurn(this.draft)
    for (const entry of entries) turn.add(entry)
    for (const { id, path } of turn.calls) this.results.expect(id, path)
    const message = turn.message(isCurrentTurn)
    if (message !== undefined) this.spoken.push(this.draft.from(pathOf(entries[0]), message))
  }

  /** Automatic caching of everything so far. */
  private markEnd(last: ChatMessage): void {
    const mark = breakpoint(this.draft.source, '', this.draft)
    const { content } = last
    if (typeof content === 'string' && 'prompt_cache_breakpoint' in mark) {
      last['content'] = [{ type: 'text', text: content, ...mark }]
    } else if (Array.isArray(content)) Object.assign(content.at(-1) as object, mark)
  }
}

const pathOf = (entry: Entry | undefined): string => `messages[${entry?.index ?? 0}]`

/** What an assistant said, thought and called in one turn. */
class AssistantTurn {
  readonly calls: { readonly id: string; readonly path: string; readonly call: object }[] = []
  private readonly callIds = new Set<string>()
  /** In one text up to each mark. */
  private readonly texts: ChatPart[] = []
  private thoughts = ''

  constructor(private readonly draft: ChatRequestDraft) {}

  add(entry: Entry): void {
    const { content } = entry.message
    const path = `${pathOf(entry)}.content`
    if (typeof content === 'string') this.say(textPart(content))
    else {
      listAt(content, path).forEach((value, index) => {
        this.addBlock(objectAt(value, `${path}[${index}]`), entry.index, index)
      })
    }
  }

  /** undefined = nothing is left of it. */
  message(isCurrentTurn: boolean): ChatMessage | undefined {
    const { calls, thoughts } = this
    const field = isCurrentTurn && thoughts !== '' ? this.draft.facts.reasoningField : undefined
    if (this.texts.length === 0 && calls.length === 0 && field === undefined) return undefined
    return {
      role: 'assistant',
      content: this.content(),
      ...(field === undefined ? {} : { [field]: thoughts }),
      ...(calls.length === 0 ? {} : { tool_calls: calls.map(({ call }) => call) }),
    }
  }

  private content(): unknown {
    if (this.texts.length === 0) return this.calls.length > 0 ? null : ''
    return contentOf(this.texts)
  }

  private say(part: ChatPart): void {
    if (part.text === '') return
    const last = this.texts.at(-1)
    if (last === undefined || isMarked(last)) this.texts.push(part)
    else this.texts.splice(-1, 1, { ...part, text: `${last.text}${part.text}` })
  }

  private addBlock(block: Members, messageIndex: number, blockIndex: number): void {
    const path = `messages[${messageIndex}].content[${blockIndex}]`
    switch (block['type']) {
      case 'text':
        this.addText(block, path)
        break
      case 'thinking':
        this.draft.checkMembers(block, path, ASSISTANT_MEMBERS.thinking)
        this.thoughts += textAt(block['thinking'], `${path}.thinking`)
        break
      case 'redacted_thinking':
        // Readable by its own vendor alone.
        break
      case 'tool_use':
        this.addCall(block, path, messageIndex, blockIndex)
        break
      default:
        refuseBlock(textAt(block['type'], `${path}.type`), path, this.draft)
    }
  }

  private addText(block: Members, path: string): void {
    for (const part of partsOf(block, path, this.draft, ['text'])) this.say(part)
  }

  private addCall(block: Members, path: string, messageIndex: number, blockIndex: number): void {
    const { draft } = this
    draft.checkMembers(block, path, ASSISTANT_MEMBERS.tool_use)
    const { caller } = block
    if (isRecord(caller) && caller['type'] !== 'direct') {
      draft.verdicts.refuse(`${path}.caller`, 'Only calls of the model itself can be gone on with.')
    }
    dropBreakpoint(block, path, draft)
    const id = textAt(block['id'], `${path}.id`)
    if (this.callIds.has(id)) {
      draft.verdicts.refuse(`${path}.id`, `The tool_use id ${quoted(id)} stands twice in one turn.`)
    }
    this.callIds.add(id)
    objectAt(block['input'], `${path}.input`)
    const input = draft.texts.at('messages', messageIndex, 'content', blockIndex, 'input')?.text.text ?? '{}'
    const name = draft.toolNames.shortened(textAt(block['name'], `${path}.name`))
    const call = draft.from(path, { id, type: 'function', function: { name, arguments: input } })
    this.calls.push({ id, path, call })
  }
}
