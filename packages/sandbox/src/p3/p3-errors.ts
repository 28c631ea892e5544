import { FAULT_NAMES, type FaultAnswer, type FaultDialect, type StatusFault } from '../server/faults.js'

/** `base_resp.status_msg` by `base_resp.status_code`: every code of section 3 of the notes. Callers judge by the code. */
export const STATUS_MESSAGES: Readonly<Record<number, string>> = {
  1000: 'unknown error',
  1001: 'request timeout',
  1002: 'rate limit exceeded (RPM)',
  1004: 'login fail: token does not match group',
  1008: 'insufficient balance',
  1013: 'internal service error',
  1024: 'internal error',
  1026: 'input contains sensitive content',
  1027: 'output contains sensitive content',
  1033: 'downstream service error',
  1039: 'token limit exceeded (TPM)',
  1041: 'connection limit exceeded',
  1042: 'invisible or illegal characters exceed 10 percent of the text',
  1043: 'asr similarity check failed',
  1044: 'clone prompt similarity check failed',
  2013: 'invalid params',
  2037: 'voice duration out of range',
  2038: 'voice cloning is not permitted for this account',
  2039: 'voice clone voice id duplicate',
  2042: 'you do not have access to this voice_id',
  2045: 'rate growth limit exceeded',
  2048: 'prompt audio too long',
  2049: 'invalid api key',
  2054: 'voice id not exist',
  2056: 'usage limit of the plan reached, resets every 5 hours',
  20132: 'invalid samples or voice_id',
}

/** A refusal in P3's way: HTTP 200 with a `base_resp.status_code`. Thrown by the judges, rendered by the simulator. */
export class P3Rejection extends Error {
  /** `detail` follows the code's standard message; `violation` is what the simulator records against the request. */
  constructor(
    readonly code: number,
    detail?: string,
    readonly violation?: string,
  ) {
    const standard = STATUS_MESSAGES[code] ?? 'unknown error'
    super(detail === undefined ? standard : `${standard}, ${detail}`)
  }

  /** The whole JSON body; `extra_info` is missing, as in the upstream's own refusals. */
  body(traceId: string): string {
    const base_resp = { status_code: this.code, status_msg: this.message }
    return JSON.stringify({ data: null, trace_id: traceId, base_resp })
  }
}

/** Refuses with 2013. */
export function rejectParameter(detail: string): never {
  throw new P3Rejection(2013, detail)
}

export const JSON_TYPE = 'application/json; charset=utf-8'

/** What P3 answers for the common faults. A failure in the middle of an event stream has `errorCode`. */
export function p3Faults(headers: Readonly<Record<string, string>>, traceId: string, errorCode: number): FaultDialect {
  return {
    statusAnswer: (fault) => {
      const answer = statusAnswer(fault, traceId)
      return { ...answer, headers: { ...headers, ...answer.headers } }
    },
    errorFrames: () => [`data: ${new P3Rejection(errorCode).body(traceId)}\n\n`],
  }
}

function statusAnswer(fault: StatusFault, traceId: string): FaultAnswer {
  const json = (status: number, code: number, more: Readonly<Record<string, string>> = {}): FaultAnswer => ({
    status,
    headers: { 'content-type': JSON_TYPE, ...more },
    body: new P3Rejection(code).body(traceId),
  })
  switch (fault) {
    case '400':
    case '413':
    case '422':
      return json(Number(fault), 2013)
    case '401':
    case '403':
      return json(Number(fault), 1004)
    case '402':
      return json(402, 1008)
    case '404':
      return { status: 404, headers: { 'content-type': 'text/plain' }, body: '404 page not found' }
    case '429':
      return json(429, 1002, { 'retry-after': '2', 'retry-after-ms': '1200' })
    case 'quota':
      return json(200, 1008)
    case '500':
    case '503':
    case '529':
      return htmlPage(Number(fault))
  }
}

/** The load balancer answers, not the service. */
function htmlPage(status: number): FaultAnswer {
  const title = `${status} Server Error`
  return {
    status,
    headers: { 'content-type': 'text/html' },
    body: `<html>\n<head><title>${title}</title></head>\n<body><center><h1>${title}</h1></center></body>\n</html>\n`,
  }
}

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
