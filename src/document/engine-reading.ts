import type { Frame } from '@multi-model-gateway/document-engine/protocol.js'
import type { GatewayError } from '../core/gateway-error.js'
import { callerLeft } from '../core/request-context.js'
import { EngineEnded } from './engine-exit.js'
import { errorOfEnd, outOfTime } from './parse-outcome.js'
import type { EngineChild, EngineJob } from './parser-process.js'
import type { ParseTerms } from './parser.js'

/** Most documents are done by then, and the process is spared. */
const LEAVE_GRACE_MS = 500

/**
 * One document on one engine, which is ended when time is up or nobody waits any more. The engine is idle or gone by
 * the time the promise settles. Rejects with a `GatewayError`, or with an `EngineEnded` that `isUntouched`: then another
 * engine may read the document.
 */
export async function readOn(
  engine: EngineChild,
  job: EngineJob,
  { departure, deadlineAtMs, parseMs }: ParseTerms & { readonly parseMs: number },
): Promise<Frame> {
  if (departure.left) throw callerLeft()
  const remainingMs = deadlineAtMs - performance.now()
  if (remainingMs <= 0) throw outOfTime()
  const interruptions: GatewayError[] = []
  const interruptIn = (ms: number, reason: () => GatewayError): NodeJS.Timeout =>
    setTimeout(() => {
      interruptions.push(reason())
      engine.kill()
    }, ms)
  const timers = [interruptIn(Math.min(parseMs, remainingMs), outOfTime)]
  const unsubscribe = departure.onLeave(() => {
    timers.push(interruptIn(LEAVE_GRACE_MS, callerLeft))
  })
  try {
    return await engine.run(job)
  } catch (error) {
    if (interruptions[0] !== undefined) throw interruptions[0]
    throw error instanceof EngineEnded && error.isUntouched ? error : errorOfEnd(error)
  } finally {
    timers.forEach(clearTimeout)
    unsubscribe()
  }
}
