import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Call } from '../core/request-context.js'
import { Clock } from './clock.js'
import type { Terms } from './transitions.js'

/** What changes of tasks are made under at this moment. */
@Injectable()
export class TaskTerms {
  constructor(
    private readonly store: ConfigStore,
    private readonly clock: Clock,
  ) {}

  for(call: Call): Terms {
    const { tasks, callbacks } = this.store.current
    return {
      nowMs: this.clock.nowMs(),
      chance: Math.random(),
      pollIntervalMs: tasks.pollIntervalMs,
      reconcileMs: tasks.reconcileMs,
      maxAgeMs: tasks.maxAgeMs,
      firstCallbackMs: callbacks.scheduleMs[0] ?? 0,
      requestId: call.requestId,
    }
  }
}
