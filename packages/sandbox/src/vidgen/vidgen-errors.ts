import { randomBytes } from 'node:crypto'
import type { FaultAnswer, FaultDialect, StatusFault } from '../server/faults.js'

/** Every code of the service: the HTTP status it comes with, and its usual words. */
const VIDGEN_CODES = {
  1000: { status: 401, message: 'Authentication failed' },
  1001: { status: 401, message: 'Authorization is empty' },
  1002: { status: 401, message: 'Authorization is invalid' },
  1003: { status: 401, message: 'Authorization is not yet valid' },
  1004: { status: 401, message: 'Authorization has expired' },
  1100: { status: 429, message: 'Account exception' },
  1101: { status: 429, message: 'Account in arrears' },
  1102: { status: 429, message: 'Resource pack depleted or expired' },
  1103: { status: 403, message: 'No permission for the requested resource' },
  1200: { status: 400, message: 'Invalid request parameters' },
  1201: { status: 400, message: 'Invalid parameter' },
  1202: { status: 404, message: 'The requested method is invalid' },
  1203: { status: 404, message: 'The requested resource does not exist' },
  1300: { status: 400, message: 'The platform strategy was triggered' },
  1301: { status: 400, message: 'The content safety policy was triggered' },
  1302: { status: 429, message: 'The API request is too fast' },
  1303: { status: 429, message: 'parallel task over resource pack limit' },
  1304: { status: 429, message: 'The IP whitelist policy was triggered' },
  5000: { status: 500, message: 'Internal server error' },
  5001: { status: 503, message: 'The server is temporarily unavailable for maintenance' },
  5002: { status: 504, message: 'Internal server timeout' },
} as const satisfies Readonly<Record<number, { readonly status: number; readonly message: string }>>

type VidgenCode = keyof typeof VIDGEN_CODES

/** The code a word such as `1301` stands for. */
export function vidgenCode(word: string): VidgenCode | undefined {
  return Object.hasOwn(VIDGEN_CODES, word) ? (Number(word) as VidgenCode) : undefined
}

export const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' }

/** A refusal; thrown by the judges, rendered by the simulator. */
export class VidgenRejection extends Error {
  /** Without words of its own it has the code's usual ones. */
  constructor(
    readonly code: VidgenCode,
    message: string = VIDGEN_CODES[code].message,
  ) {
    super(message)
  }

  get answer(): FaultAnswer {
    const { status } = VIDGEN_CODES[this.code]
    const body = JSON.stringify({ code: this.code, message: this.message, request_id: newRequestId() })
    return { status, headers: JSON_HEADERS, body }
  }
}

/** Refuses with 1201; the message begins with the field's name. */
export function rejectField(field: string, rule: string): never {
  throw new VidgenRejection(1201, `${field} ${rule}`)
}

export const newRequestId = (): string => `Cj${randomBytes(16).toString('hex')}`

const CODE_OF_FAULT: Readonly<Record<StatusFault, VidgenCode>> = {
  '400': 1201,
  '401': 1000,
  '402': 1102,
  '403': 1103,
  '404': 1203,
  '413': 1200,
  '422': 1201,
  '429': 1302,
  quota: 1102,
  '500': 5000,
  '503': 5001,
  '529': 5001,
}

/** What the service answers for the common faults. It has no event streams. */
export const vidgenFaults: FaultDialect = {
  statusAnswer: (fault) => {
    const answer = new VidgenRejection(CODE_OF_FAULT[fault]).answer
    if (fault === 'quota') return answer
    const headers =
      fault === '429' ? { ...answer.headers, 'retry-after': '2', 'retry-after-ms': '1200' } : answer.headers
    return { ...answer, headers, status: Number(fault) }
  },
  errorFrames: () => [],
}
