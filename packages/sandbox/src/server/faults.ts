/**
 * Every simulated failure. A client selects one by the first word of its text (`input`, the last user
 * message, or `prompt`), `#<name>`; a test selects it with `simulator.queueFault(name)` before the request.
 *
 * | Word | What the caller sees |
 * |---|---|
 * | `#400` `#401` `#402` `#403` `#404` `#413` `#422` | that status with the upstream's own error body |
 * | `#429` | 429, `retry-after: 2` and `retry-after-ms: 1200` |
 * | `#quota` | 429 `insufficient_quota` (P1, P4) or 400 `Your credit balance is too low` (M1) |
 * | `#500` `#503` `#529` | that status with the upstream's own error body |
 * | `#html` | 200 with a `text/html` page |
 * | `#malformed` | 200 `application/json` whose JSON is broken |
 * | `#empty` | 200 with an empty body |
 * | `#hang` | the request is read, no answer ever comes |
 * | `#reset` | the connection is reset before any byte of the answer |
 * | `#cut` | the connection is destroyed in the middle of the answer |
 * | `#cleancut` | the answer ends properly, but half of it (and a stream's terminator) is missing |
 * | `#stall` | the first half of the answer, then silence on an open connection |
 * | `#slow` | the answer in small pieces, one each 50 ms |
 * | `#errorframe` | an event stream: one error frame after two frames; raw audio: as `#cut`; plain JSON: as `#500` |
 *
 * Further words shape a good answer: see `magic-text.ts`.
 */
export const STATUS_FAULTS = [
  '400',
  '401',
  '402',
  '403',
  '404',
  '413',
  '422',
  '429',
  'quota',
  '500',
  '503',
  '529',
] as const

/** Faults that replace the whole answer, after the request was read and before it is judged. */
export const REPLACING_FAULTS = [...STATUS_FAULTS, 'html', 'malformed', 'empty', 'hang', 'reset'] as const

/** Faults that spoil an answer the simulator has already decided to give. */
export const SPOILING_FAULTS = ['cut', 'cleancut', 'stall', 'slow', 'errorframe'] as const

export const FAULT_NAMES = [...REPLACING_FAULTS, ...SPOILING_FAULTS] as const

export type StatusFault = (typeof STATUS_FAULTS)[number]
export type ReplacingFault = (typeof REPLACING_FAULTS)[number]
export type SpoilingFault = (typeof SPOILING_FAULTS)[number]
export type FaultName = (typeof FAULT_NAMES)[number]

/** A fault as a test queues it: a name of the table above, an arbitrary answer, or a pause before the normal answer. */
export type Fault = FaultName | ScriptedFault

/** Faults that only a test can queue, for HTTP requests and for handshakes of WebSockets. */
export type ScriptedFault =
  | {
      readonly kind: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body: string | Buffer
    }
  | { readonly kind: 'delay'; readonly ms: number }

/** What one upstream family answers for the faults whose body is a matter of dialect. */
export interface FaultDialect {
  statusAnswer(fault: StatusFault): FaultAnswer
  /** The frames an event stream of this family ends with after a failure in the middle. */
  errorFrames(): readonly string[]
}

export interface FaultAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The fault a caller's text asks for with its first word, if any. */
export function faultOfText(text: string): FaultName | undefined {
  const word = /^#([a-z0-9]+)(?=\s|$)/.exec(text.trimStart())?.[1]
  return FAULT_NAMES.find((name) => name === word)
}

export function isSpoiling(fault: Fault | undefined): fault is SpoilingFault {
  return SPOILING_FAULTS.some((name) => name === fault)
}

export function isStatusFault(fault: Fault): fault is StatusFault {
  return STATUS_FAULTS.some((name) => name === fault)
}

interface QueuedFault {
  readonly fault: Fault
  readonly method: string | undefined
}

/** The faults the next requests shall suffer, each used up by one request. */
export class FaultQueue {
  #queued: QueuedFault[] = []

  /** Without a method it applies to the next request of any method. */
  add(fault: Fault, method: string | undefined): void {
    this.#queued.push({ fault, method })
  }

  /** The oldest fault that is meant for a request of this method, or undefined; it is no longer queued afterwards. */
  take(method: string | undefined): Fault | undefined {
    const index = this.#queued.findIndex((queued) => queued.method === undefined || queued.method === method)
    return index === -1 ? undefined : this.#queued.splice(index, 1)[0]?.fault
  }

  clear(): void {
    this.#queued = []
  }
}
