import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { readDocument } from './engine.js'
import {
  ENGINE_PIPE,
  type EngineAnswer,
  type EngineBegunHead,
  type EngineJobHead,
  type EngineReadyHead,
  faultAnswer,
  type Frame,
  FrameReader,
  frameStart,
  readAnswer,
} from './protocol.js'
import type { WatchTerms } from './watchdog.js'

/**
 * The process that reads documents, one after another. Jobs and results travel over one pipe to the gateway.
 * Arguments: process id of the gateway, memory limit in bytes.
 */

// The gateway bounds what it sends.
const ANY_LENGTH = { headBytes: Infinity, payloadBytes: Infinity }
const WATCH_HEAP_MEGABYTES = 8

const [gatewayPid = 0, memoryBytes = 0] = process.argv.slice(2).map(Number)
const busy = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

// Ctrl-C and service managers signal the whole process group; the gateway alone decides when this process ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
// A rejected promise that a library does not await does not concern the document; an awaited one fails the job.
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`forgotten rejection: ${String(reason)}\n`)
})

const workerData: WatchTerms = { gatewayPid, memoryBytes, busy }
new Worker(new URL('./watchdog.js', import.meta.url), {
  workerData,
  env: {},
  resourceLimits: { maxOldGenerationSizeMb: WATCH_HEAP_MEGABYTES },
}).unref()
// The permissions of Node do not bind a thread that is started with options of its own: no other one may be.
Object.defineProperty(process.getBuiltinModule('node:worker_threads'), 'Worker', { value: undefined })
syncBuiltinESMExports()

const pipe = new Socket({ fd: ENGINE_PIPE })
const reader = new FrameReader(
  () => ANY_LENGTH,
  (frame) => void work(frame),
)
pipe.on('data', (chunk: Buffer) => {
  reader.push(chunk)
})
// The gateway closed the pipe or is gone.
for (const end of ['end', 'error', 'close'] as const) pipe.once(end, () => process.exit(0))
const ready: EngineReadyHead = { outcome: 'ready' }
pipe.write(frameStart(ready, 0))
const begun: EngineBegunHead = { outcome: 'begun' }

async function work({ head, payload }: Frame): Promise<void> {
  busy[0] = 1
  Atomics.notify(busy, 0)
  pipe.write(frameStart(begun, 0))
  const answer = await read(head as EngineJobHead, payload)
  Atomics.store(busy, 0, 0)
  pipe.write(frameStart({ ...answer.head, rssBytes: process.memoryUsage.rss() }, answer.payload.length))
  pipe.write(answer.payload)
}

async function read({ limits, contentBytes, ...claims }: EngineJobHead, payload: Buffer): Promise<EngineAnswer> {
  try {
    // A plain array: readers give its memory away, which a Buffer does not survive.
    const bytes = new Uint8Array(payload.buffer, payload.byteOffset, payload.length)
    return readAnswer(await readDocument({ ...claims, bytes }, limits), contentBytes)
  } catch (error) {
    return faultAnswer(error)
  }
}
