import { type SendHandle, spawn } from 'node:child_process'
import { type Clock, processClock } from '../core/time.js'
import type { UpgradableServer } from './upgrade.js'

/**
 * libuv accepts one connection per listening handle in each turn of the event loop. Under load a turn takes tens of milliseconds, and
 * new connections, those of health checks too, wait for seconds in the kernel's queue. So many handles of the same socket accept as
 * many in a turn. Each costs every new connection 2 µs, in vain when there is no other connection to accept.
 */
export const LISTENING_HANDLES = 32

/** A Node process that does nothing else has returned the handles by then, also on a busy machine. */
const RETURN_LIMIT_MS = 30_000

/** Sends the handle that it gets back as often as it is told: each arrives as another file descriptor of the same socket. */
const RETURN_HANDLES = `process.on('message', (count, handle) => {
  let left = count
  for (let index = 0; index < count; index++)
    process.send(index, handle, { keepOpen: true }, () => --left === 0 && process.disconnect())
})`

/**
 * Lets a listening server accept several connections in a turn of the event loop. Node cannot copy a handle within a process, so that a
 * short-lived process returns it. `backlog` is that of the server. Resolves with the number of handles: 1 when that does not work.
 */
export function acceptMore(server: UpgradableServer, backlog: number): Promise<number> {
  const child = spawn(process.execPath, ['-e', RETURN_HANDLES], {
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    timeout: RETURN_LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  child.unref()
  child.channel?.unref()
  return new Promise((resolve) => {
    let handles = 1
    const end = (): void => {
      resolve(handles)
    }
    const fail = (error: Error | null): void => {
      if (error !== null) end()
    }
    child.on('error', fail).on('close', end)
    child.on('message', (_index, handle) => {
      server.acceptWith(handle, backlog)
      handles++
    })
    // There is no channel where no file descriptor was left for it.
    if (child.connected) child.send(LISTENING_HANDLES - 1, Reflect.get(server, '_handle') as SendHandle, fail)
  })
}

/** A queue that was seen so long ago may be empty. */
const FORGOTTEN_MS = 100

/**
 * Whether connections wait in the kernel's queue, where nothing else shows them: turns are short however many wait. They do as long as
 * every handle of a server accepts one in each turn.
 */
export class AcceptQueue {
  #accepted = 0
  #fullSinceMs: number | undefined
  #lastFullAtMs = 0

  constructor(
    private readonly server: UpgradableServer,
    private readonly nowMs: Clock = processClock,
  ) {
    server.on('connection', () => {
      if (this.#accepted++ === 0) setImmediate(this.#endTurn)
    })
  }

  /** For how long they have waited, at least, in milliseconds. 0 where a single handle accepts: it always does. */
  get waitingMs(): number {
    const isForgotten = this.nowMs() - this.#lastFullAtMs > FORGOTTEN_MS
    return this.#fullSinceMs === undefined || isForgotten ? 0 : this.#lastFullAtMs - this.#fullSinceMs
  }

  readonly #endTurn = (): void => {
    const { handles } = this.server
    const isFull = handles > 1 && this.#accepted >= handles
    this.#accepted = 0
    if (!isFull) {
      this.#fullSinceMs = undefined
      return
    }
    const nowMs = this.nowMs()
    if (nowMs - this.#lastFullAtMs > FORGOTTEN_MS) this.#fullSinceMs = undefined
    this.#fullSinceMs ??= nowMs
    this.#lastFullAtMs = nowMs
  }
}
