import { GatewayError } from '../common/errors/gateway-error.js'
import type { ByteSink, ByteSource } from '../common/http/byte-source.js'
import { type Call, callerLeft } from '../common/http/call.js'
import { KEEP_ALIVE_MS } from '../common/http/sse-relay.js'
import type { UpstreamImageTask } from '../providers/contracts/image.contract.js'
import type { TaskListener } from './task-watch.js'

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** Node's timers fire at once beyond it. */
const MAXIMUM_TIMER_MS = 2_147_483_647

/** Begins to follow a task; returns the way to stop. */
export type Follow = (listener: TaskListener) => () => void

/**
 * A task's changes as an event stream: `event: task` with the task object at each of them, up to the terminal state or
 * `maxAgeMs` after the first. A reader who is behind gets the newest object only. Fails without an event when the task
 * cannot be found.
 */
export class TaskEvents implements ByteSource, TaskListener {
  private sink!: ByteSink
  private isPaused = false
  private isOver = false
  private waiting: Buffer | undefined
  private keepAlive: NodeJS.Timeout | undefined
  private age: NodeJS.Timeout | undefined
  private stopFollowing: () => void = () => undefined
  private forgetCaller: () => void = () => undefined

  constructor(
    private readonly follow: Follow,
    private readonly call: Call,
    private readonly maxAgeMs: number,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.stopFollowing = this.follow(this)
    this.forgetCaller = this.call.departure.onLeave(() => {
      this.failed(callerLeft())
    })
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.flush()
  }

  cancel(): void {
    this.waiting = undefined
    this.finish(() => undefined)
  }

  changed({ object }: UpstreamImageTask): void {
    this.waiting = frameOf(object)
    if (this.keepAlive === undefined) this.beginTimers()
    else this.keepAlive.refresh()
    if (!this.isPaused) this.flush()
  }

  ended(): void {
    this.finish(() => {
      this.sink.end()
    })
  }

  failed(error: GatewayError): void {
    this.finish(() => {
      this.sink.fail(error)
    })
  }

  /** Only once the upstream has answered: before, silence may still become a proper error. */
  private beginTimers(): void {
    this.keepAlive = setInterval(() => {
      if (!this.isPaused) this.sink.data(KEEP_ALIVE)
    }, KEEP_ALIVE_MS)
    this.age = setTimeout(
      () => {
        this.ended()
      },
      Math.min(this.maxAgeMs, MAXIMUM_TIMER_MS),
    )
  }

  private flush(): void {
    const frame = this.waiting
    this.waiting = undefined
    if (frame !== undefined) this.sink.data(frame)
  }

  private finish(tell: () => void): void {
    if (this.isOver) return
    this.isOver = true
    clearInterval(this.keepAlive)
    clearTimeout(this.age)
    this.stopFollowing()
    this.forgetCaller()
    // The last event is what everyone waited for: it goes out even to a slow reader.
    this.flush()
    tell()
  }
}

/** In JSON a line break can stand between tokens only, where a blank does as well. */
const frameOf = (object: string): Buffer => Buffer.from(`event: task\ndata: ${object.replace(/[\r\n]+/g, ' ')}\n\n`)
