export interface P2Failure {
  readonly code: number
  readonly text: string
}

export const GRANT_NOT_FOUND = 'authenticate request: load grant: requested grant not found'
export const WRONG_ENGINE = 'Fail to feed text, reason Init Engine Instance failed'

/** The upstream's own table; the words behind each code are what its documentation or its users report. */
const CODE_TEXTS: Readonly<Record<number, string>> = {
  3001: 'invalid request',
  3003: 'quota exceeded for types: concurrency',
  3005: 'backend service is busy',
  3006: 'request with the same reqid has been finished or failed',
  3010: 'text is too long',
  3011: 'illegal input text!',
  3030: 'processing timed out',
  3031: 'processing failed',
  3032: 'waiting for audio timed out',
  3040: 'backend link failed',
  3050: 'voice type not exist',
}

/** What is wrong while the speech is made; all other codes judge the request, so no acknowledgement precedes them. */
const BACKEND_CODES: readonly number[] = [3005, 3030, 3031, 3032, 3040]

export function failureOf(code: number): P2Failure {
  return { code, text: CODE_TEXTS[code] ?? `unknown error ${code}` }
}

export function isBackendFailure(failure: P2Failure): boolean {
  return BACKEND_CODES.includes(failure.code)
}

/** A request the upstream does not take. `isViolation` marks what no relay may send, whatever its caller asked for. */
export class P2Rejection extends Error {
  constructor(
    readonly code: number,
    message = failureOf(code).text,
    readonly isViolation = false,
  ) {
    super(message)
  }
}

/** Throws what only a faulty relay can cause. */
export function violate(message: string, code = 3001): never {
  throw new P2Rejection(code, message, true)
}
