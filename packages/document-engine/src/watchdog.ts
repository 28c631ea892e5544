import { workerData } from 'node:worker_threads'

/**
 * A thread beside the engine. The engine may be inside one call for minutes: nothing in its own thread would then see
 * that the gateway is gone, or how much memory the whole process has by now, inside and outside of the JavaScript heap.
 */
export interface WatchTerms {
  /** Whose child this process is as long as the gateway lives. */
  readonly gatewayPid: number
  readonly memoryBytes: number
  /** Shared; its one element is 1 while the engine works. An idle engine sees by itself that its pipe was closed. */
  readonly busy: Int32Array
}

const LOOK_EVERY_MS = 100

const { gatewayPid, memoryBytes, busy } = workerData as WatchTerms
const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
for (;;) {
  Atomics.wait(busy, 0, 0)
  // By signal: nothing gentler gets through to a thread inside native code. The gateway takes it for want of memory.
  if (process.ppid !== gatewayPid || process.memoryUsage.rss() > memoryBytes) process.kill(process.pid, 'SIGKILL')
  Atomics.wait(pause, 0, 0, LOOK_EVERY_MS)
}
