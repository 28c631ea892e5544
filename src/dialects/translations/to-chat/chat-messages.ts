/** A message of a chat request. */
export type ChatMessage = Record<string, unknown> & { readonly role: string; content?: unknown }

/** A content part of a chat message. */
export type ChatPart = Record<string, unknown> & { readonly type: string; text?: string }

/** A part that is text. */
export const textPart = (text: string): ChatPart => ({ type: 'text', text })

/** What came back for a call of a tool. */
interface ToolParts {
  /** Of the tool message, which cannot hold more. */
  readonly texts: ChatPart[]
  /** Pictures and files that the texts mention, for a message of the user behind all results. */
  readonly attachments: readonly ChatPart[]
}

/** Splits the parts of a result by where chat upstreams take them. */
export function toolParts(callId: string, parts: readonly ChatPart[]): ToolParts {
  const counts = { picture: 0, file: 0 }
  const attachments: ChatPart[] = []
  const texts = parts.map((part) => {
    if (part.type === 'text') return part
    const kind = part.type === 'file' ? 'file' : 'picture'
    const label = `${kind} ${++counts[kind]} of`
    attachments.push(textPart(`${label} the result of ${callId}:`), part)
    return textPart(`${label} this result follows`)
  })
  return { texts, attachments }
}

/** A string where that is enough: there are upstreams that take nothing else. Marks of the cache need a part. */
export function contentOf(parts: ChatPart[]): string | ChatPart[] {
  const [only] = parts
  const text = parts.length === 1 && only?.type === 'text' ? only.text : undefined
  return text === undefined || only === undefined || isMarked(only) ? parts : text
}

/** Whether the cached beginning of a conversation is to end here. */
export const isMarked = (part: ChatPart): boolean => 'prompt_cache_breakpoint' in part

/** The message for a result. */
export const toolMessage = (callId: string, texts: ChatPart[]): ChatMessage => ({
  role: 'tool',
  tool_call_id: callId,
  content: texts.length === 0 ? '' : contentOf(texts),
})
