import { isRecord } from '../../../core/validation-rules.js'
import { dropped, type FieldTable, refused, refusedUnless } from '../field-table.js'
import { isAbsent, isEmpty, type Members, objectAt, optionalListAt, textAt } from '../members.js'
import { translateFormat } from './answer-format.js'
import type { ChatRequestDraft, MemberTable } from './request-draft.js'

/** Fields of messages that are in beta: the types of the vendor's beta client have them beside the others. */
export const BETA_FIELDS: FieldTable<ChatRequestDraft> = {
  // Names of features; what needs one of them stands in a field of its own.
  betas: dropped,
  billing_policy: refusedUnless(isBilledToCaller, 'Leave it out: the upstream bills the account of the gateway alone.'),
  compaction,
  context_management: contextManagement,
  fallback_credit_token: fallbackCreditToken,
  fallbacks,
  mcp_servers: refusedUnless(isEmpty, 'Describe the tools of the servers as custom tools, and call them yourself.'),
  output_format: outputFormat,
  thread: refused('Leave it out, and send the whole conversation in messages.'),
}

function isBilledToCaller(value: unknown): boolean {
  const payer = isRecord(value) ? (value['bill_to'] ?? 'self') : undefined
  return payer === 'self'
}

/** A count of tokens ignores it in its own dialect, too. */
function compaction(_value: unknown, { isCount, verdicts }: ChatRequestDraft): void {
  if (!isCount) verdicts.refuse('compaction', 'Leave it out, and ask for a summary in a message of the user.')
}

const CONTEXT_MEMBERS: MemberTable = { edits: 'read' }

/** What becomes of the edits of a conversation, by their types. */
export const CONTEXT_EDITS: Readonly<Record<string, 'drop' | 'refuse'>> = {
  // Chat upstreams get thoughts of the current turn alone.
  clear_thinking_20251015: 'drop',
  clear_tool_uses_20250919: 'refuse',
  compact_20260112: 'refuse',
}

function contextManagement(value: unknown, draft: ChatRequestDraft): void {
  const path = 'context_management'
  const config = objectAt(value, path)
  draft.checkMembers(config, path, CONTEXT_MEMBERS)
  optionalListAt(config['edits'], `${path}.edits`).forEach((edit, index) => {
    contextEdit(objectAt(edit, `${path}.edits[${index}]`), `${path}.edits[${index}]`, draft)
  })
}

function contextEdit(edit: Members, path: string, { verdicts }: ChatRequestDraft): void {
  const type = textAt(edit['type'], `${path}.type`)
  const verdict = Object.hasOwn(CONTEXT_EDITS, type) ? CONTEXT_EDITS[type] : undefined
  if (verdict === 'drop') verdicts.drop(path)
  else verdicts.refuse(`${path}.type`, 'Leave the edit out, and send the conversation as it is to be read.')
}

/** With `best_effort` the request is served without the credit, too. */
function fallbackCreditToken(value: unknown, { verdicts }: ChatRequestDraft): void {
  const path = 'fallback_credit_token'
  if (isRecord(value) && value['mode'] === 'best_effort') verdicts.drop(path)
  else verdicts.refuse(path, 'Leave it out: the upstream gives no such credit.')
}

/** `default` means no other models where the vendor has none for this one. */
function fallbacks(value: unknown, { verdicts }: ChatRequestDraft): void {
  if (value === 'default') verdicts.drop('fallbacks')
  else if (!isEmpty(value)) {
    verdicts.refuse('fallbacks', 'Leave it out, and send a request that was refused to another model yourself.')
  }
}

/** The older place of `output_config.format`. */
function outputFormat(value: unknown, draft: ChatRequestDraft): void {
  const { output_config: config } = draft.source
  if (isRecord(config) && !isAbsent(config['format'])) {
    draft.verdicts.refuse('output_format', 'Send output_config.format alone.')
  }
  translateFormat(value, ['output_format'], draft)
}
