/**
 * Words that shape a good answer, anywhere in a caller's text:
 *
 * | Word | Effect |
 * |---|---|
 * | `#bytes=N` | speech: exactly N bytes of pcm-like data instead of speech |
 * | `#chunks=N` | chat and messages: N content pieces `piece <n>` |
 * | `#words=N` | chat and messages: an answer of N words |
 * | `#hold=N` | any event stream: N frames, then silence until the caller leaves |
 * | `#args={…}` | the arguments of the first tool call, taken verbatim up to the end of the text |
 */
export function magicNumber(text: string, word: 'bytes' | 'chunks' | 'words' | 'hold'): number | undefined {
  const digits = new RegExp(`(?:^|\\s)#${word}=(\\d{1,12})(?=\\s|$)`).exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

export function magicArguments(text: string): string | undefined {
  return /(?:^|\s)#args=(.*)$/s.exec(text)?.[1]
}

/** The pieces of an answer that says `fallback`, or as many as the caller's text asks for. Lazy: N may be millions. */
export function answerPieces(callerText: string, fallback: string): Iterable<string> {
  const chunks = magicNumber(callerText, 'chunks')
  if (chunks !== undefined) return numbered('piece', chunks)
  const words = magicNumber(callerText, 'words')
  if (words !== undefined) return numbered('word', words)
  return fallback.match(/\s*\S+/g) ?? []
}

function* numbered(noun: string, count: number): Generator<string> {
  for (let number = 1; number <= count; number += 1) yield `${number === 1 ? '' : ' '}${noun}${number}`
}

/** A rough count as vendors' tokenisers give it: four ASCII characters, or one of any other script, to a token. */
export function estimateTokens(text: string): number {
  let ascii = 0
  let other = 0
  for (const character of text) {
    if (character.charCodeAt(0) < 0x80) ascii += 1
    else other += 1
  }
  return Math.ceil(ascii / 4) + other
}
