import { GatewayError } from '../common/errors/gateway-error.js'
import type { ByteSink, ByteSource } from '../common/http/byte-source.js'
import type { Call } from '../common/http/call.js'
import { KEEP_ALIVE_MS } from '../common/http/sse-relay.js'
import type { Task } from '../tasks/task.js'
import type { Tasks } from '../tasks/tasks.js'

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/**
 * A task's changes as an event stream: `event: task` with the task object at each of them, the first time at once, up to
 * the terminal state. A reader who is behind gets the newest object only.
 */
export class TaskEvents implements ByteSource {
  private sink!: ByteSink
  private isPaused = false
  private isOver = false
  private waiting: Buffer | undefined
  private keepAlive: NodeJS.Timeout | undefined
  private stopListening: () => void = () => undefined

  constructor(
    private readonly tasks: Tasks,
    private readonly task: Task,
    private readonly call: Call,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.keepAlive = setInterval(() => {
      if (!this.isPaused) sink.data(KEEP_ALIVE)
    }, KEEP_ALIVE_MS)
    this.stopListening = this.call.departure.onLeave(() => {
      this.cancel()
    })
    this.tasks
      .watch(this.task, this.call, (task) => {
        this.show(task)
      })
      .then(
        () => {
          this.finish(() => {
            sink.end()
          })
        },
        (error: unknown) => {
          this.finish(() => {
            sink.fail(gatewayErrorOf(error))
          })
        },
      )
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

  private show({ object }: Task): void {
    if (object === undefined || this.isOver) return
    this.waiting = frameOf(object)
    this.keepAlive?.refresh()
    if (!this.isPaused) this.flush()
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
    this.stopListening()
    // The last event is what everyone waited for: it goes out even to a slow reader.
    this.flush()
    tell()
  }
}

/** In JSON a line break can stand between tokens only, where a blank does as well. */
const frameOf = (object: string): Buffer => Buffer.from(`event: task\ndata: ${object.replace(/[\r\n]+/g, ' ')}\n\n`)

const gatewayErrorOf = (error: unknown): GatewayError =>
  error instanceof GatewayError
    ? error
    : new GatewayError('internal', 'The gateway failed to follow this task.', { cause: error })
