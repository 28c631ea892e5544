import { BucketCounts } from './bucket-counts.js'
import { CALL_VERDICTS, type CallVerdict } from './call-verdict.js'

/** Into what a call's time is divided. `total` holds the others. */
export const CALL_PHASES = ['total', 'gateway', 'receive', 'upstream', 'first_byte'] as const
export type CallPhase = (typeof CALL_PHASES)[number]

/** From a millisecond, which is what the gateway takes itself, to an hour, which is how long sessions may be open. */
export const PHASE_BOUNDS_MS: readonly number[] = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 3_600_000,
]

export interface EndedCalls {
  readonly method: string
  readonly status: number
  readonly verdict: CallVerdict
  readonly count: number
}

/** What has become of the calls of one route: plain numbers, as every call is counted. */
export class CallCounts {
  readonly phases: Readonly<Record<CallPhase, BucketCounts>> = {
    total: new BucketCounts(PHASE_BOUNDS_MS),
    gateway: new BucketCounts(PHASE_BOUNDS_MS),
    receive: new BucketCounts(PHASE_BOUNDS_MS),
    upstream: new BucketCounts(PHASE_BOUNDS_MS),
    first_byte: new BucketCounts(PHASE_BOUNDS_MS),
  }
  /** By method, then by a number made of status and verdict. */
  private readonly ended = new Map<string, Map<number, number>>()

  end(method: string, status: number, verdict: CallVerdict): void {
    const key = status * CALL_VERDICTS.length + CALL_VERDICTS.indexOf(verdict)
    const ofMethod = this.ended.get(method)
    if (ofMethod === undefined) this.ended.set(method, new Map([[key, 1]]))
    else ofMethod.set(key, (ofMethod.get(key) ?? 0) + 1)
  }

  *endedCalls(): Iterable<EndedCalls> {
    for (const [method, counts] of this.ended) {
      for (const [key, count] of counts) {
        const verdict = CALL_VERDICTS[key % CALL_VERDICTS.length] ?? 'gateway_failed'
        yield { method, status: Math.floor(key / CALL_VERDICTS.length), verdict, count }
      }
    }
  }
}
