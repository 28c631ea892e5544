import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import type { SpeechFault, SpeechUpstream } from './speech-lab.js'

/** A simulator that is called over HTTP, as the contract sees it. */
export const httpUpstream = (simulator: Simulator, faults: Readonly<Record<SpeechFault, Fault>>): SpeechUpstream => ({
  port: simulator.port,
  calls: () => simulator.requests.length,
  speaking: () => simulator.activeRequests,
  violations: () => simulator.violations,
  nextCall: () => simulator.nextRequest(),
  nextDeparture: () => simulator.nextAbort(),
  queueFault: (fault) => {
    simulator.queueFault(faults[fault])
  },
  reset: () => {
    simulator.reset()
  },
  close: () => simulator.close(),
})
