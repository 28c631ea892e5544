import { FAULT_NAMES } from '../server/faults.js'
import { STATUS_MESSAGES } from './p3-status.table.js'

const UNKNOWN_ERROR = 1000

/**
 * Words at the beginning of a text (several may follow one another) that shape P3's answer, beside `#bytes=N` of
 * `magic-text.ts` and the faults of `faults.ts`:
 *
 * | Word | Effect |
 * |---|---|
 * | `#1002` and every other code of `p3-status.table.ts` | HTTP 200, JSON with that `base_resp` |
 * | `#429`, `#500` and the other HTTP statuses of `faults.ts` | that HTTP status: HTML from 500 on, else JSON |
 * | `#cut` | event stream: ends without its status-2 chunk; JSON: destroyed midway |
 * | `#reset` | event stream: destroyed midway; JSON: reset before the first byte |
 * | `#jsonerr`, `#jsonerr=CODE` | JSON refusal (default 1000) instead of events |
 * | `#errfirst`, `#errfirst=CODE` | event stream: a refusal as its first chunk |
 * | `#errmid`, `#errmid=CODE` | event stream: two audio chunks, then a refusal as a chunk; JSON: the refusal |
 * | `#json` | JSON with the whole audio although events were asked for |
 * | `#done` | `data: [DONE]` after the last chunk |
 * | `#odd` | audio pieces of an odd number of bytes: samples are torn apart |
 * | `#aggregate` | the last chunk repeats the audio although that was declined |
 * | `#oneshot` | one status-2 chunk with all the audio and nothing before it |
 * | `#badhex`, `#oddhex` | the third piece has a digit that is none, or an odd number of digits |
 * | `#badframe` | event stream: the third piece's JSON is broken |
 * | `#nousage` | no `extra_info` |
 * | `#order` | other order of keys: `base_resp` first, `status` before `audio` |
 * | `#urldead`, `#urlprivate` | links answer 404, or lead to a private address |
 *
 * With `#bytes=N` the audio is repeated in the last chunk only on explicit wish (`exclude_aggregated_audio: false` or
 * `#aggregate`).
 */
export class P3Words {
  readonly #words = new Map<string, number | undefined>()

  constructor(text: string) {
    for (const token of text.trimStart().split(/\s+/u)) {
      const [, word, value] = /^#([a-z0-9]+)(?:=(\d{1,12}))?$/.exec(token) ?? []
      if (word === undefined) break
      this.#words.set(word, value === undefined ? undefined : Number(value))
    }
  }

  has(word: string): boolean {
    return this.#words.has(word)
  }

  /** The status code to refuse with, if the text asks for one. */
  get refusal(): number | undefined {
    const code = [...this.#words.keys()].find((word) => Object.hasOwn(STATUS_MESSAGES, word))
    if (code !== undefined) return Number(code)
    return this.has('jsonerr') ? this.codeOf('jsonerr') : undefined
  }

  codeOf(word: 'jsonerr' | 'errfirst' | 'errmid'): number {
    return this.#words.get(word) ?? UNKNOWN_ERROR
  }

  /** The common fault these words stand for, as a text that begins with its name. */
  faultText(stream: boolean): string | undefined {
    if (this.has('cut')) return stream ? '#cleancut' : '#cut'
    if (this.has('reset')) return stream ? '#cut' : '#reset'
    if (this.has('errmid')) return '#errorframe'
    const name = FAULT_NAMES.find((fault) => this.#words.has(fault))
    return name === undefined ? undefined : `#${name}`
  }
}
