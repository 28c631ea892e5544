import { workerData } from 'node:worker_threads'

/**
 * A worker thread that watches the process. The engine may spend minutes inside one call, so its own thread would not notice
 * that the gateway is gone, or how much memory the process uses inside and outside of the JavaScript heap.
 */
export interface WatchTerms {
  /** Parent process id, as long as the gateway lives. */
  readonly gatewayPid: number
  readonly memoryBytes: number
  /** Shared memory; its element is 1 while the engine works. An idle engine notices by itself that the pipe was closed. */
  readonly busy: Int32Array
}

const LOOK_EVERY_MS = 100

const { gatewayPid, memoryBytes, busy } = workerData as WatchTerms
const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
for (;;) {
  Atomics.wait(busy, 0, 0)
  // SIGKILL, because other ways do not interrupt native code. The gateway reports the signal as lack of memory.
  if (process.ppid !== gatewayPid || process.memoryUsage.rss() > memoryBytes) process.kill(process.pid, 'SIGKILL')
  Atomics.wait(pause, 0, 0, LOOK_EVERY_MS)
}
