import type { ModelFactsSection } from '../../config/channel-schema.js'
import { P1_MODELS } from './p1-models.js'

const PLAIN: ModelFactsSection = { thinking: 'none', systemRole: 'system' }
/** They read text alone. */
const TEXT_ONLY: ModelFactsSection = { ...PLAIN, vision: false, files: false }
/** The first models that think take no effort, and instructions before the conversation alone. */
const FIRST_THINKING: ModelFactsSection = { ...TEXT_ONLY, systemRole: 'none' }
const O_SERIES: ModelFactsSection = {
  thinking: 'adaptive',
  efforts: ['low', 'medium', 'high'],
  systemRole: 'developer',
}
const FIFTH: ModelFactsSection = { ...O_SERIES, efforts: ['minimal', 'low', 'medium', 'high'] }
const FIFTH_1: ModelFactsSection = { ...O_SERIES, efforts: ['none', 'low', 'medium', 'high'] }
const FIFTH_2: ModelFactsSection = { ...O_SERIES, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] }
/** From here on, chat takes tools from models alone that do not think. */
const FIFTH_4: ModelFactsSection = { ...FIFTH_2, thinkingWithTools: false }
/** Their effort `max` is one of the Responses API. */
const FIFTH_6: ModelFactsSection = { ...FIFTH_4, promptCacheBreakpoints: true }
/** It cannot be kept from thinking, with tools or without. */
const ASTRA: ModelFactsSection = {
  ...FIFTH_2,
  promptCacheBreakpoints: true,
  efforts: ['low', 'medium', 'high', 'xhigh'],
}

const FACTS: Readonly<Record<string, ModelFactsSection>> = {
  'gpt-3.5-turbo': TEXT_ONLY,
  'gpt-3.5-turbo-0301': TEXT_ONLY,
  'gpt-3.5-turbo-0613': TEXT_ONLY,
  'gpt-3.5-turbo-1106': TEXT_ONLY,
  'gpt-3.5-turbo-0125': TEXT_ONLY,
  'gpt-3.5-turbo-16k': TEXT_ONLY,
  'gpt-3.5-turbo-16k-0613': TEXT_ONLY,
  'gpt-4': TEXT_ONLY,
  'gpt-4-0314': TEXT_ONLY,
  'gpt-4-0613': TEXT_ONLY,
  'gpt-4-32k': TEXT_ONLY,
  'gpt-4-32k-0314': TEXT_ONLY,
  'gpt-4-32k-0613': TEXT_ONLY,
  'gpt-4-1106-preview': TEXT_ONLY,
  'gpt-4-0125-preview': TEXT_ONLY,
  'gpt-4-turbo-preview': TEXT_ONLY,
  'o1-preview': FIRST_THINKING,
  'o1-mini': FIRST_THINKING,
  o1: O_SERIES,
  o3: O_SERIES,
  'o3-mini': { ...O_SERIES, vision: false, files: false },
  'o4-mini': O_SERIES,
  'gpt-5': FIFTH,
  'gpt-5-mini': FIFTH,
  'gpt-5-nano': FIFTH,
  'gpt-5.1': FIFTH_1,
  'gpt-5.1-mini': FIFTH_1,
  'gpt-5.2': FIFTH_2,
  'gpt-5.4': FIFTH_4,
  'gpt-5.4-mini': FIFTH_4,
  'gpt-5.4-nano': FIFTH_4,
  'gpt-5.5': FIFTH_4,
  'gpt-5.6': FIFTH_6,
  'gpt-5.6-sol': FIFTH_6,
  'gpt-5.6-terra': FIFTH_6,
  'gpt-5.6-luna': FIFTH_6,
  'gpt-6-astra': ASTRA,
  'gpt-6-sol': FIFTH_6,
  'gpt-6-luna': FIFTH_6,
  'gpt-6.1-sol': FIFTH_6,
  'gpt-6.1-terra': FIFTH_6,
  'gpt-6.2-astra': ASTRA,
  'gpt-6.2-sol': FIFTH_6,
}

/**
 * What translations to chat models depend on, as the vendor's pages of models and its refusals say; dated ids are those of their
 * models. Efforts are those of chat. The newest models, of which less is known, are taken for their elder of the same name.
 */
export const P1_MODEL_FACTS: Readonly<Record<string, ModelFactsSection>> = Object.fromEntries(
  Object.keys(P1_MODELS.chat ?? {}).map((id) => [id, FACTS[id.replace(/-20\d\d-\d\d-\d\d$/, '')] ?? PLAIN]),
)
