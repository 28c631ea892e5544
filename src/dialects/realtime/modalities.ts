/** JSON text of a member; the caller's own spelling of its modalities, when it is known. */
type JsonText = Buffer | string

const GA_AUDIO = '["audio"]'
const GA_TEXT = '["text"]'
const BETA_AUDIO = '["audio","text"]'

/** GA answers in audio (which includes the transcript) or in text, never in both. Other values stay. */
export function modalitiesToGa(value: Buffer): JsonText {
  const words = wordsOf(value)
  if (words === undefined || words.length === 0) return value
  return words.includes('audio') ? GA_AUDIO : GA_TEXT
}

/** Back in the caller's own words when one of them means the same, otherwise as beta writes them. */
export function modalitiesToBeta(value: Buffer, callersWords: readonly (string | undefined)[] = []): JsonText {
  const words = wordsOf(value)
  if (words === undefined || words.length === 0) return value
  const hasAudio = words.includes('audio')
  const own = callersWords.find((text) => text !== undefined && text.includes('"audio"') === hasAudio)
  return own ?? (hasAudio ? BETA_AUDIO : GA_TEXT)
}

function wordsOf(value: Buffer): unknown[] | undefined {
  try {
    const words: unknown = JSON.parse(value.toString())
    return Array.isArray(words) ? words : undefined
  } catch {
    return undefined
  }
}
