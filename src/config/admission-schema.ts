import { mapOf } from './checks.js'
import { integer, numberFrom } from './scalar-schemas.js'
import { optional, withDefault } from './schema-schema.js'
import type { AdmissionSection } from './settings.js'

const fractionOfOne = numberFrom({ min: 0.01, max: 1 })
const delayMs = integer({ min: 5, max: 10_000 })

export const admission = mapOf<AdmissionSection>(
  {
    concurrentRequests: withDefault(integer({ min: 1, max: 1_000_000 }), 10_000),
    bytesInFlight: withDefault(integer({ min: 1 }), 314_572_800),
    callerShare: withDefault(fractionOfOne, 0.5),
    loopDelayHighMs: withDefault(delayMs, 100),
    loopDelayLowMs: withDefault(delayMs, 5),
    memoryBytes: optional(integer({ min: 67_108_864 })),
    memoryHighShare: withDefault(fractionOfOne, 0.9),
    memoryLowShare: withDefault(fractionOfOne, 0.8),
  },
  ({ loopDelayHighMs, loopDelayLowMs, memoryHighShare, memoryLowShare }, at) => {
    if (loopDelayHighMs !== undefined && loopDelayLowMs !== undefined && loopDelayLowMs >= loopDelayHighMs)
      at.field('loopDelayLowMs').fault('must be less than admission.loopDelayHighMs')
    if (memoryHighShare !== undefined && memoryLowShare !== undefined && memoryLowShare >= memoryHighShare)
      at.field('memoryLowShare').fault('must be less than admission.memoryHighShare')
  },
)
