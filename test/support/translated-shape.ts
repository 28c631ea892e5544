import { isRecord } from '../../src/core/validation-rules.js'
import type { Dialect } from './translation-scenarios.js'

/**
 * What may differ between a native answer and a translated one; all else is the same, member by member. `*` is any element of a
 * list, `*<word>` those of this type.
 */
const DIFFERENCES: Readonly<Record<Dialect, readonly string[]>> = {
  chat: [
    // Each upstream makes its own.
    'id',
    'created',
    'choices.*.message.tool_calls.*.id',
    // A native answer names the dated model, a translated one what the caller asked for.
    'model',
    // Of the chat upstream alone.
    'system_fingerprint',
    'service_tier',
    'choices.*.message.annotations',
    // Padding of its chunks.
    'obfuscation',
    // Told by newer models alone.
    'usage.prompt_tokens_details.cache_write_tokens',
  ],
  messages: [
    'id',
    'content.*.id',
    'model',
    // By whom a tool is called, which upstreams leave out where it is the model itself.
    'content.*.caller',
    // Where and how the tokens were made, which a chat upstream does not tell, or tells otherwise.
    ...['usage.cache_creation', 'usage.inference_geo', 'usage.service_tier', 'usage.output_tokens_details'],
  ],
  responses: ['id', 'created_at', 'completed_at', 'output.*.id', 'output.*.call_id', 'model'],
}

/**
 * An answer without what may differ; of tokens only whether there are any, as each upstream counts its own. Members of a message that
 * are null are left out, as upstreams do where they have nothing to say.
 */
export function comparableAnswer(answer: unknown, dialect: Dialect, more: readonly string[] = []): unknown {
  const differences = new Set([...DIFFERENCES[dialect], ...more])
  const isNullAbsent = dialect === 'messages'

  const of = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) {
      const kept = value.filter((item) => !differences.has(`${path}.*<${isRecord(item) ? String(item['type']) : ''}>`))
      return kept.map((item) => of(item, `${path}.*`))
    }
    // In a whole answer messages upstreams have an object, which has no spelling.
    if (typeof value === 'string' && path.endsWith('.arguments')) return JSON.parse(value) as unknown
    if (typeof value === 'number' && path.startsWith('usage.')) return value > 0 ? 'some' : 'none'
    return isRecord(value) ? membersOf(value, path) : value
  }

  const membersOf = (value: Readonly<Record<string, unknown>>, path: string): unknown =>
    Object.fromEntries(
      Object.entries(value)
        .map(([name, member]) => [name, member, path === '' ? name : `${path}.${name}`] as const)
        .filter(([, member, memberPath]) => !differences.has(memberPath) && !(isNullAbsent && member === null))
        .map(([name, member, memberPath]) => [name, of(member, memberPath)]),
    )

  return of(answer, '')
}

/** What a client is told that an answer used, in the units of a simulator's ledger. */
export function reportedUnits(answer: object, dialect: Dialect): Readonly<Record<string, number>> {
  const usage = recordAt(answer, 'usage')
  const input = recordAt(usage, dialect === 'chat' ? 'prompt_tokens_details' : 'input_tokens_details')
  const output = recordAt(usage, dialect === 'chat' ? 'completion_tokens_details' : 'output_tokens_details')
  const isMessages = dialect === 'messages'
  const read = isMessages ? usage['cache_read_input_tokens'] : input['cached_tokens']
  const written = isMessages ? usage['cache_creation_input_tokens'] : input['cache_write_tokens']
  const prompt = Number(usage['prompt_tokens'] ?? usage['input_tokens'])
  const units = {
    promptTokens: isMessages ? prompt + Number(read) + Number(written) : prompt,
    completionTokens: Number(usage['completion_tokens'] ?? usage['output_tokens']),
    cachedTokens: Number(read ?? 0),
    cacheWriteTokens: Number(written ?? 0),
    reasoningTokens: Number(output['reasoning_tokens'] ?? output['thinking_tokens'] ?? 0),
  }
  return Object.fromEntries(Object.entries(units).filter(([, quantity]) => quantity > 0))
}

function recordAt(value: object, name: string): Readonly<Record<string, unknown>> {
  const member: unknown = Object.entries(value).find(([other]) => other === name)?.[1]
  return isRecord(member) ? member : {}
}
