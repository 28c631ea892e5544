import type { RecordedRequest } from '@multi-model-gateway/sandbox/server/recorded-request.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'

/** What the simulator received last. Throws when it received nothing. */
export function lastRequest(simulator: Simulator): RecordedRequest {
  if (simulator.lastRequest === undefined) throw new Error('nothing reached the simulator')
  return simulator.lastRequest
}
