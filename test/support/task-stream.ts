import { EventEmitter, once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { openRaw, type RawRequest } from './raw-http.js'
import type { ShownTask } from './video-caller.js'

const FRAME = /^event: task\ndata: (.*)$/

/** A task followed as server-sent events. */
export class TaskStream {
  text = ''
  /** Whether the answer was whole; rejects never. */
  readonly ended: Promise<boolean>
  private readonly news = new EventEmitter()

  private constructor(private readonly response: IncomingMessage) {
    response.on('error', () => undefined)
    response.on('data', (chunk: Buffer) => {
      this.text += chunk.toString()
      this.news.emit('news')
    })
    this.ended = new Promise((resolve) => {
      response.on('close', () => {
        this.news.emit('news')
        resolve(response.complete)
      })
    })
  }

  static async open(url: string, request: RawRequest): Promise<TaskStream> {
    return new TaskStream(await openRaw(url, request))
  }

  get status(): number {
    return this.response.statusCode ?? 0
  }

  get headers(): IncomingHttpHeaders {
    return this.response.headers
  }

  /** The task objects so far, as text. */
  get objects(): string[] {
    const frames = this.text.split('\n\n').slice(0, -1)
    return frames.flatMap((frame) => FRAME.exec(frame)?.[1] ?? [])
  }

  get statuses(): string[] {
    return this.objects.map((object) => (JSON.parse(object) as ShownTask).task_status)
  }

  /** Resolves when the task has been shown in this state; throws when the stream ends before. */
  async shows(status: string): Promise<void> {
    while (!this.statuses.includes(status)) {
      if (this.response.closed) throw new Error(`the stream ended without '${status}': ${this.text}`)
      await once(this.news, 'news')
    }
  }

  leave(): void {
    this.response.destroy()
  }
}
