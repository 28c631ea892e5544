import { quoted } from '../../../core/errors.js'
import { isAbsent, type Members, textAt, wrongShape } from '../members.js'
import { type ChatMessage, type ChatPart, textPart, toolMessage, toolParts } from '../to-chat/chat-messages.js'
import { markLast, partsOf } from './parts.js'
import { type MemberTable, type ChatRequestDraft } from './request-draft.js'

export const TOOL_RESULT_MEMBERS = {
  type: 'read',
  tool_use_id: 'read',
  content: 'read',
  is_error: 'read',
  cache_control: 'read',
  toolset_name: { refused: 'Describe the tools of the set as custom tools.' },
} as const satisfies MemberTable

const ERROR_MARK = 'Error: '

interface Result {
  readonly message: ChatMessage
  /** What a tool message cannot hold. */
  readonly attachments: readonly ChatPart[]
}

/** Brings calls of tools and their results together: chat upstreams refuse one without the other. */
export class ToolResults {
  /** Of the last turn, in its order: where each call stands. */
  private readonly calls = new Map<string, string>()
  private readonly results = new Map<string, Result>()

  constructor(private readonly draft: ChatRequestDraft) {}

  expect(id: string, path: string): void {
    this.calls.set(id, path)
  }

  add(block: Members, path: string): void {
    this.draft.checkMembers(block, path, TOOL_RESULT_MEMBERS)
    const id = textAt(block['tool_use_id'], `${path}.tool_use_id`)
    if (!this.calls.has(id)) {
      this.draft.verdicts.refuse(`${path}.tool_use_id`, `There is no tool_use ${quoted(id)} in the message before.`)
    }
    if (this.results.has(id)) {
      this.draft.verdicts.refuse(`${path}.tool_use_id`, `The tool_use ${quoted(id)} has a tool_result already.`)
    }
    this.results.set(id, this.resultOf(id, block, path))
  }

  assertNoneMissing(): void {
    for (const [id, path] of this.calls) {
      if (!this.results.has(id)) {
        this.draft.verdicts.refuse(path, `The tool_use ${quoted(id)} has no tool_result in the next message.`)
      }
    }
  }

  /** One message for each result in the order of the calls, and one of the user with the pictures and files of all of them. */
  take(): ChatMessage[] {
    this.assertNoneMissing()
    const results = [...this.calls.keys()].flatMap((id) => this.results.get(id) ?? [])
    this.calls.clear()
    this.results.clear()
    const attachments = results.flatMap((result) => result.attachments)
    const messages = results.map(({ message }) => message)
    return attachments.length === 0 ? messages : [...messages, { role: 'user', content: attachments }]
  }

  private resultOf(id: string, block: Members, path: string): Result {
    const { texts, attachments } = toolParts(id, this.partsIn(block, path))
    if (block['is_error'] === true) this.markError(texts, path)
    markLast(texts, block, path, this.draft)
    return { message: this.draft.from(path, toolMessage(id, texts)), attachments }
  }

  private partsIn({ content }: Members, path: string): readonly ChatPart[] {
    if (isAbsent(content) || content === '') return []
    if (typeof content === 'string') return [textPart(content)]
    const contentPath = `${path}.content`
    if (!Array.isArray(content)) throw wrongShape(contentPath, 'a string or an array of blocks', content)
    return content.flatMap((block, index) => {
      const blockPath = `${contentPath}[${index}]`
      const parts = partsOf(block, blockPath, this.draft)
      if (parts.some(({ type }) => type !== 'text')) this.draft.verdicts.approximate(blockPath)
      return parts
    })
  }

  private markError(texts: ChatPart[], path: string): void {
    this.draft.verdicts.approximate(`${path}.is_error`)
    const [first] = texts
    if (first === undefined) texts.push(textPart(ERROR_MARK))
    else if (first.text?.startsWith(ERROR_MARK) === false) first.text = ERROR_MARK + first.text
  }
}
