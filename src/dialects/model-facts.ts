import type { ModelFactsSection, ModelRow } from '../config/channel-schema.js'

/** Those without a default. */
type Unset = 'efforts' | 'reasoningField'

/** What the translation to a model's dialect depends on: a row of the catalogue says it, never the model's name. */
export type ModelFacts = Required<Omit<ModelFactsSection, Unset>> & Pick<ModelFactsSection, Unset>

/** Defaults of a model without facts. */
const UNKNOWN: ModelFacts = {
  thinking: 'none',
  thinkingWithTools: true,
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
