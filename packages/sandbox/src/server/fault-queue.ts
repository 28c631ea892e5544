import type { Fault } from './faults.js'

interface QueuedFault {
  readonly fault: Fault
  readonly method: string | undefined
}

/** The faults the next requests shall suffer, each used up by one request. */
export class FaultQueue {
  #queued: QueuedFault[] = []

  /** Without a method the next request takes it, whatever its method is. */
  add(fault: Fault, method: string | undefined): void {
    this.#queued.push({ fault, method })
  }

  /** The oldest fault that is meant for a request of this method, or undefined; it is no longer queued afterwards. */
  take(method: string | undefined): Fault | undefined {
    const index = this.#queued.findIndex((queued) => queued.method === undefined || queued.method === method)
    return index === -1 ? undefined : this.#queued.splice(index, 1)[0]?.fault
  }

  clear(): void {
    this.#queued = []
  }
}
