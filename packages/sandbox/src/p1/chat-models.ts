/** What one chat model allows. */
interface ChatTraits {
  /** Input tokens. */
  readonly contextTokens: number
  readonly maxOutputTokens: number
  /** Values of `reasoning_effort`; none for a model that does not think. */
  readonly efforts: readonly string[]
  /** `web_search_options` works. */
  readonly searches: boolean
  /** Chat takes functions only without thinking: none asked for, or the effort `none` asked for. */
  readonly functionsNeed?: 'no effort' | 'effort none'
  /** It thinks by itself and shows it, in `reasoning_content`, as servers of open models do. */
  readonly showsThoughts?: boolean
}

const PLAIN: ChatTraits = { contextTokens: 128_000, maxOutputTokens: 16_384, efforts: [], searches: false }
const LONG: ChatTraits = { ...PLAIN, contextTokens: 1_047_576, maxOutputTokens: 32_768 }
const OLD: ChatTraits = { ...PLAIN, maxOutputTokens: 4096 }
const FOURTH: ChatTraits = { ...OLD, maxOutputTokens: 8192 }
const SEARCHING: ChatTraits = { ...PLAIN, searches: true }
const O_SERIES: ChatTraits = {
  ...PLAIN,
  contextTokens: 200_000,
  maxOutputTokens: 100_000,
  efforts: ['low', 'medium', 'high'],
}
const FIFTH: ChatTraits = {
  ...PLAIN,
  contextTokens: 400_000,
  maxOutputTokens: 128_000,
  efforts: ['minimal', 'low', 'medium', 'high'],
}
const FIFTH_1: ChatTraits = { ...FIFTH, efforts: ['none', 'low', 'medium', 'high'] }
const FIFTH_2: ChatTraits = { ...FIFTH, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] }
const FIFTH_4_MINI: ChatTraits = { ...FIFTH_2, functionsNeed: 'no effort' }
const FIFTH_4: ChatTraits = { ...FIFTH_4_MINI, contextTokens: 1_050_000 }
const FIFTH_5: ChatTraits = { ...FIFTH_4, functionsNeed: 'effort none' }
const FIFTH_6: ChatTraits = { ...FIFTH_5, efforts: [...FIFTH_5.efforts, 'max'] }
/** It cannot be kept from thinking, so that its functions could be asked for in no other way. */
const ASTRA: ChatTraits = { ...FIFTH_2, contextTokens: 1_050_000, efforts: ['low', 'medium', 'high', 'xhigh', 'max'] }
/** Stands for a model that an operator serves himself: it speaks chat alone, and takes any sampling. */
export const OPEN_MODEL = 'open-thinker'
const OPEN: ChatTraits = { ...PLAIN, efforts: ['low', 'medium', 'high'], showsThoughts: true }
/** For models that are not known: nothing that some model allows is refused. */
const ANY: ChatTraits = {
  ...FIFTH_2,
  contextTokens: 1_050_000,
  efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
}

/** Limits of the models as their pages in the vendor's documentation say (November 2026), by the name without its date, or the four digits of older ones. */
const TRAITS: Readonly<Record<string, ChatTraits>> = {
  'gpt-3.5-turbo': OLD,
  'gpt-3.5-turbo-16k': OLD,
  'gpt-4': FOURTH,
  'gpt-4-32k': FOURTH,
  'gpt-4-1106-preview': OLD,
  'gpt-4-0125-preview': OLD,
  'gpt-4-vision-preview': OLD,
  'gpt-4-turbo-preview': OLD,
  'gpt-4-turbo': OLD,
  'gpt-4o': PLAIN,
  'gpt-4o-mini': PLAIN,
  'chatgpt-4o-latest': PLAIN,
  'gpt-4o-search-preview': SEARCHING,
  'gpt-4o-mini-search-preview': SEARCHING,
  'gpt-4.1': LONG,
  'gpt-4.1-mini': LONG,
  'gpt-4.1-nano': LONG,
  'gpt-audio': PLAIN,
  'gpt-audio-1.5': PLAIN,
  'gpt-audio-mini': PLAIN,
  'gpt-4o-audio-preview': PLAIN,
  'gpt-4o-mini-audio-preview': PLAIN,
  // They think, and take no effort.
  'o1-preview': { ...PLAIN, maxOutputTokens: 32_768 },
  'o1-mini': { ...PLAIN, maxOutputTokens: 65_536 },
  o1: O_SERIES,
  o3: O_SERIES,
  'o3-mini': O_SERIES,
  'o4-mini': O_SERIES,
  'gpt-5': FIFTH,
  'gpt-5-mini': FIFTH,
  'gpt-5-nano': FIFTH,
  'gpt-5-chat-latest': PLAIN,
  'gpt-5.1': FIFTH_1,
  'gpt-5.1-mini': FIFTH_1,
  'gpt-5.1-chat-latest': PLAIN,
  'gpt-5.2': FIFTH_2,
  'gpt-5.2-chat-latest': PLAIN,
  'gpt-5.3-chat-latest': PLAIN,
  'gpt-5.4': FIFTH_4,
  'gpt-5.4-mini': FIFTH_4_MINI,
  'gpt-5.4-nano': FIFTH_4_MINI,
  'gpt-5.5': FIFTH_5,
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
  [OPEN_MODEL]: OPEN,
  'o1-pro': O_SERIES,
  'o3-pro': O_SERIES,
  'codex-mini-latest': O_SERIES,
  'gpt-5-pro': { ...FIFTH, maxOutputTokens: 272_000, efforts: ['high'] },
  'gpt-5.2-pro': { ...FIFTH, efforts: ['medium', 'high', 'xhigh'] },
  'gpt-5-codex': { ...FIFTH, efforts: ['low', 'medium', 'high'] },
  'gpt-5.1-codex': { ...FIFTH, efforts: ['low', 'medium', 'high'] },
}

export const chatTraits = (model: string): ChatTraits => knownTraits(model) ?? ANY

/** Whether the table has it, so that something can be refused for it. */
export const isKnownChatModel = (model: string): boolean => knownTraits(model) !== undefined

function knownTraits(model: string): ChatTraits | undefined {
  const plain = model.replace(/-(?:20\d\d-\d\d-\d\d|\d{4})$/, '')
  return Object.hasOwn(TRAITS, plain) ? TRAITS[plain] : undefined
}

/** Whether a model takes `max_completion_tokens` only, and thinks: those of the o-series and from the fifth generation on. */
export const isReasoning = (model: string): boolean => /^(o\d|gpt-([5-9]|\d\d))(?!.*-chat)/.test(model)
