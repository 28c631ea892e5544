/** What the P1 simulator remembers between requests, and how strict it is. */
export interface P1Context {
  /** The only accepted key; undefined accepts every key but `bad`. */
  readonly apiKey: string | undefined
  /** Tolerates unknown top-level chat fields instead of answering 400. */
  readonly acceptUnknownFields: boolean
  /** What transcription by token takes for a minute of audio. */
  readonly audioTokensPerMinute: number
  /** Spoken answers that can be referred to, with their expiry in Unix seconds. */
  readonly audioAnswers: Map<string, number>
}
