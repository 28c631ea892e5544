import type { ModelRow } from '../config/channel-schema.js'

/** What the translation to a model's dialect depends on; a row of the catalogue says it, never the model's name. */
export interface ModelFacts {
  /** How the model is asked to think: not at all, by a budget of tokens, or by itself with an effort. */
  readonly thinking: 'none' | 'budget' | 'adaptive'
  /** How a messages upstream is asked not to think; `never` = it cannot be. */
  readonly thinkingOff: 'disabled' | 'between_tools' | 'never'
  /** Whether it can be made to call a tool. */
  readonly forcedToolChoice: boolean
  /** Whether it takes temperature, top_p and top_k. */
  readonly sampling: boolean
  /** In which field a chat upstream takes the maximum. */
  readonly maxTokensField: 'max_completion_tokens' | 'max_tokens'
  /** The role in which it takes instructions within a conversation; `none` = only before it. */
  readonly systemRole: 'system' | 'developer' | 'none'
  /** Sent where the client's dialect needs no maximum and the upstream's does. */
  readonly maxOutputTokens: number
  readonly vision: boolean
  readonly files: boolean
  /** In which a chat upstream shows and wants back what it thought; absent = in none. */
  readonly reasoningField?: 'reasoning_content' | 'reasoning' | undefined
  /** Whether a chat upstream takes marks where its prompt cache is to be cut. */
  readonly promptCacheBreakpoints: boolean
}

/** What is so where nothing is known. */
const UNKNOWN: ModelFacts = {
  thinking: 'none',
  thinkingOff: 'disabled',
  forcedToolChoice: true,
  sampling: true,
  maxTokensField: 'max_completion_tokens',
  systemRole: 'none',
  maxOutputTokens: 8192,
  vision: true,
  files: true,
  promptCacheBreakpoints: false,
}

/** A model that thinks by itself is one that takes an effort, where its row does not say how it is asked to. */
export function factsOf(row: ModelRow | undefined): ModelFacts {
  if (row === undefined) return UNKNOWN
  return { ...UNKNOWN, ...(row.reasons === true ? { thinking: 'adaptive' } : {}), ...row.facts }
}
