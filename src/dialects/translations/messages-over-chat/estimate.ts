import { mediaTokensIn, tokensOf } from '../../../core/token-counter.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { Members } from '../members.js'

/** What stands around each message. */
const TOKENS_PER_MESSAGE = 4

/** Roughly the tokens of the prompt of a messages request: system, tools, messages and media. */
export function estimateInputTokens(fields: object): number {
  const { system, tools, messages } = fields as Members
  const spoken: readonly unknown[] = Array.isArray(messages) ? messages : []
  const framing = (spoken.length + 1) * TOKENS_PER_MESSAGE
  return framing + textTokens(system) + jsonTokens(tools) + textTokens(spoken) + mediaTokensIn([system, spoken])
}

const jsonTokens = (value: unknown): number =>
  value === undefined || value === null ? 0 : tokensOf(JSON.stringify(value))

/** Members that say what something is, or that no model reads. */
const LABELS: ReadonlySet<string> = new Set([
  'type',
  'role',
  'id',
  'tool_use_id',
  'cache_control',
  'media_type',
  'citations',
])
/** Sources whose cost cannot be seen in their characters, and what is left out of the conversation. */
const UNCOUNTED: ReadonlySet<unknown> = new Set(['base64', 'url', 'file', 'thinking', 'redacted_thinking'])

function textTokens(value: unknown): number {
  if (typeof value === 'string') return tokensOf(value)
  if (Array.isArray(value)) return value.reduce((sum: number, member) => sum + textTokens(member), 0)
  if (!isRecord(value) || UNCOUNTED.has(value['type'])) return 0
  let tokens = 0
  for (const name in value) {
    if (!LABELS.has(name)) tokens += name === 'input' ? jsonTokens(value[name]) : textTokens(value[name])
  }
  return tokens
}
