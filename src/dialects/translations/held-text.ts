import { malformedResponse } from '../../upstream/upstream-response.js'
import type { TranslationTarget } from '../translator.js'

/**
 * Text of an upstream that cannot be written yet, bounded: an upstream must not fill the gateway's memory. The limit is that of all that
 * is ever added, also where it is taken in pieces.
 */
export class HeldText {
  private text = ''
  private characters = 0

  /** `message`: of the error `upstream_failed` beyond the limit. `memory`: counts what is held until the request is over. */
  constructor(
    private readonly maximumCharacters: number,
    private readonly message: string,
    private readonly memory?: TranslationTarget['memory'],
  ) {}

  get isEmpty(): boolean {
    return this.text === ''
  }

  add(text: string): void {
    this.count(text)
    this.text += text
  }

  /** Counts a text that is held elsewhere, within the same limit. */
  count(text: string): void {
    this.characters += text.length
    if (this.characters > this.maximumCharacters) throw malformedResponse(this.message)
    this.memory?.add(Buffer.byteLength(text))
  }

  /** All that is held, which is no longer held then. */
  take(): string {
    const { text } = this
    this.text = ''
    return text
  }
}
