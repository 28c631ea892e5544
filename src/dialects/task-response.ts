import { type ByteSink, type ByteSource, ProviderResponse } from '../core/byte-stream.js'
import { keyRevoked } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import { type RequestContext, clientDisconnected } from '../core/request-context.js'
import { KEEP_ALIVE_MS } from '../upstream/sse-relay.js'

/** The upstream's message for success. */
const SUCCESS_MESSAGE = 'SUCCEED'

/**
 * JSON text of a success in the task dialect (specification: Envelope of every response). `dataText` is JSON text and
 * is relayed unchanged, with large integers and unknown fields.
 */
export const successEnvelope = (requestId: string, dataText: string, message = SUCCESS_MESSAGE): string =>
  `{"code":0,"message":${JSON.stringify(message)},"request_id":${JSON.stringify(requestId)},"data":${dataText}}`

/** A successful response in the task dialect; `dataText` as above. */
export const taskResponse = (call: RequestContext, dataText: string, message?: string): ProviderResponse =>
  jsonTextResponse(200, successEnvelope(call.requestId, dataText, message))

export const jsonTextResponse = (
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): ProviderResponse =>
  new ProviderResponse(status, { ...headers, 'content-type': 'application/json' }, Buffer.from(text))

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** Node's timers fire at once beyond it. */
const MAXIMUM_TIMER_MS = 2_147_483_647

/** Observer of a task. Nothing follows `ended` or `failed`. */
export interface TaskListener {
  /** `object` is the task object as JSON text. */
  changed(task: { readonly object: string }): void
  ended(): void
  failed(error: GatewayError): void
}

/** Observes a task; returns the function that stops it. */
export type Follow = (listener: TaskListener) => () => void

/**
 * A task's changes as an event stream: `event: task` with the task object at each of them, up to the terminal state or
 * `maxAgeMs` after the first (absent = no limit). A slow client gets the newest object only. Fails without an event when the task
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
  private forgetKey: () => void = () => undefined

  constructor(
    private readonly follow: Follow,
    private readonly call: RequestContext,
    private readonly maxAgeMs?: number,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.stopFollowing = this.follow(this)
    this.forgetCaller = this.call.disconnect.onAbort(() => {
      this.failed(clientDisconnected())
    })
    const forgetKey = this.call.caller.revocation?.onOver(() => {
      this.failed(keyRevoked())
    })
    if (forgetKey !== undefined) this.forgetKey = forgetKey
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

  changed({ object }: { readonly object: string }): void {
    if (this.isOver) return
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

  /** Only after the first response of the upstream: before it, an error status is still possible. */
  private beginTimers(): void {
    this.keepAlive = setInterval(() => {
      if (!this.isPaused) this.sink.data(KEEP_ALIVE)
    }, KEEP_ALIVE_MS)
    if (this.maxAgeMs === undefined) return
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
    this.forgetKey()
    // The last event is sent even to a slow client.
    this.flush()
    tell()
  }
}

/** In JSON, line breaks occur between tokens only, and can be replaced by blanks. */
const frameOf = (object: string): Buffer => Buffer.from(`event: task\ndata: ${object.replace(/[\r\n]+/g, ' ')}\n\n`)

/** The error for observers in place of an unknown one. */
export const followingFailure = (error: unknown): GatewayError =>
  error instanceof GatewayError
    ? error
    : new GatewayError('internal', 'The gateway failed to follow this task.', { cause: error })
