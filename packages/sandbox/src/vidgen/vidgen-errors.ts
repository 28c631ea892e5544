import { randomBytes } from 'node:crypto'
import type { FaultAnswer, FaultDialect, StatusFault } from '../server/faults.js'
import { VIDGEN_CODES, type VidgenCode } from './vidgen-codes.table.js'

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
