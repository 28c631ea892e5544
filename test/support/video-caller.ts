import { EventEmitter, once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { VidgenKind } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { pngText } from './byte-streams.js'
import { openRaw, type RawAnswer, type RawRequest, sendRaw, TEST_KEY } from './gateway.js'

/** The members of a task object that tests look at. */
export interface ShownTask {
  readonly task_id: string
  readonly task_status: string
  readonly task_status_msg?: string
  readonly task_info?: { readonly external_task_id: string }
  readonly created_at: number
  readonly updated_at: number
}

/** One event as `…/callbacks` shows it. */
export interface ShownDelivery {
  readonly webhook_id: string
  readonly host: string
  readonly attempts: number
  readonly created_at: number
  readonly next_attempt_at: number | null
  readonly delivered_at: number | null
  readonly exhausted_at: number | null
  readonly last_error: string | null
}

export interface Envelope<Data> {
  readonly code: number
  readonly message: string
  readonly request_id: string
  readonly data: Data
}

export interface VideoAnswer<Data> extends Omit<RawAnswer, 'body'> {
  readonly body: Envelope<Data>
}

/** The text of an answer's `data`, as it came. */
export const dataTextOf = ({ text }: { readonly text: string }): string => text.slice(text.indexOf('"data":') + 7, -1)

type Changes = Readonly<Record<string, unknown>>

/** A good create of either kind as JSON text. */
export const videoText = (kind: VidgenKind, changes: Changes = {}): string =>
  JSON.stringify(
    kind === 'text2video'
      ? { model_name: 'vidgen-v1', prompt: 'A paper boat on a canal', ...changes }
      : { prompt: 'A paper boat on a canal', image_list: [{ image: pngText() }], ...changes },
  )

/** A client with a key that works with tasks of one kind. */
export class VideoCaller {
  readonly path: string

  constructor(
    private readonly gateway: { readonly url: string },
    private readonly key: string = TEST_KEY,
    readonly kind: VidgenKind = 'text2video',
  ) {
    this.path = `/vidgen/v1/videos/${kind}`
  }

  /** Fields laid over those of a good create, or the whole text. */
  create(body: Changes | string = {}, headers: RawRequest['headers'] = {}): Promise<VideoAnswer<ShownTask>> {
    return this.send({ path: this.path, body: typeof body === 'string' ? body : videoText(this.kind, body), headers })
  }

  /** The id of a task that has just been created. Throws when it was not. */
  async created(changes: Changes = {}, headers: RawRequest['headers'] = {}): Promise<string> {
    const { status, text, body } = await this.create(changes, headers)
    if (status !== 200) throw new Error(`the create was answered with ${status}: ${text}`)
    return body.data.task_id
  }

  read(id: string): Promise<VideoAnswer<ShownTask>> {
    return this.get(`${this.path}/${id}`)
  }

  list(query = ''): Promise<VideoAnswer<readonly ShownTask[]>> {
    return this.get(this.path + query)
  }

  /** The ids in the list, in its order. */
  async listed(query = ''): Promise<readonly string[]> {
    return (await this.list(query)).body.data.map(({ task_id: id }) => id)
  }

  deliveries(id: string): Promise<VideoAnswer<readonly ShownDelivery[]>> {
    return this.get(`${this.path}/${id}/callbacks`)
  }

  redeliver(webhookId: string): Promise<VideoAnswer<{ readonly webhook_id: string }>> {
    return this.send({ path: `/vidgen/v1/callbacks/${webhookId}/redeliver` })
  }

  follow(id: string, headers: RawRequest['headers'] = {}): Promise<TaskStream> {
    return TaskStream.open(this.gateway.url, {
      method: 'GET',
      path: `${this.path}/${id}/events`,
      headers: { authorization: `Bearer ${this.key}`, ...headers },
    })
  }

  get<Data>(path: string): Promise<VideoAnswer<Data>> {
    return this.send({ method: 'GET', path })
  }

  private async send<Data>({ headers, ...request }: RawRequest): Promise<VideoAnswer<Data>> {
    const answer = await sendRaw(this.gateway.url, {
      ...request,
      headers: { authorization: `Bearer ${this.key}`, ...headers },
    })
    return { ...answer, body: JSON.parse(answer.text) as Envelope<Data> }
  }
}

const FRAME = /^event: task\ndata: (.*)$/

/** A task followed as server-sent events. */
class TaskStream {
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
