import { EventEmitter } from 'node:events'

/** What happens to the messages of a session, for those who wait for it. */
export class SocketFlow {
  readonly #events = new EventEmitter<{ blocked: []; flowing: []; message: []; over: [] }>()

  constructor() {
    this.#events.setMaxListeners(0)
  }

  /** A message waits because the client does not read. */
  blocked(): void {
    this.#events.emit('blocked')
  }

  /** The network has taken the message that waited, or the client is gone. */
  flowing(): void {
    this.#events.emit('flowing')
  }

  /** The client has said something. */
  received(): void {
    this.#events.emit('message')
  }

  /** The session has ended: nobody need wait for anything. */
  over(): void {
    this.#events.emit('message')
    this.#events.emit('over')
  }

  /** Resolves when the client says something or the session ends. */
  nextMessage(): Promise<void> {
    return new Promise((resolve) => {
      this.#events.once('message', resolve)
    })
  }

  /**
   * Resolves with true when the client has taken nothing for `quietMs` although a message waits, or with false when
   * the session ends before.
   */
  nextStall(quietMs: number, isBlocked: boolean): Promise<boolean> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined
      const stop = (): void => {
        clearTimeout(timer)
      }
      const settle = (stalled: boolean): void => {
        stop()
        this.#events.off('blocked', wait).off('flowing', stop).off('over', leave)
        resolve(stalled)
      }
      const leave = (): void => {
        settle(false)
      }
      const wait = (): void => {
        timer = setTimeout(settle, quietMs, true)
      }
      this.#events.on('blocked', wait).on('flowing', stop).on('over', leave)
      if (isBlocked) wait()
    })
  }
}
