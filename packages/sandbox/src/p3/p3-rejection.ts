import { STATUS_MESSAGES } from './p3-status.table.js'

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
