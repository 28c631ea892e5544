/**
 * Video tasks as both ends of the benchmark agree on them. Ids have a fixed width and times thirteen digits, so that all
 * answers of one kind have one length.
 */
import { orderText, readOrders } from './wire.mjs'

export const VIDEO_PATH = '/v1/videos/text2video'
/** Where callers find it, at the gateway and at the yardstick. */
export const CALLERS_VIDEO_PATH = `/vidgen${VIDEO_PATH}`

const ID_DIGITS = 19
const CREATED_SERIES = '8'
const ADOPTED_SERIES = '9'
const PROMPT =
  'A red kite over the sea, filmed from a boat that follows it, in the light of a late afternoon in autumn. '

/** The body of a create; with `ended` the upstream answers with a task that has ended already. */
export const createBody = ({ ended }) =>
  Buffer.from(
    JSON.stringify({
      model_name: 'vidgen-v1-6',
      prompt: orderText({ ended: ended ? 1 : 0 }) + PROMPT.repeat(4),
      mode: 'std',
      aspect_ratio: '16:9',
      duration: '5',
    }),
  )

/** The task as both sides spell it; `data` of the envelope. */
export function taskObject({ id, externalId, createdAtMs }, ended) {
  const videos = [
    { id: `${id}-0`, url: `https://media.example.com/${id}.mp4?sign=${'0'.repeat(120)}`, duration: '5.1' },
  ]
  return {
    task_id: id,
    task_status: ended ? 'succeed' : 'processing',
    task_status_msg: '',
    task_info: { external_task_id: externalId },
    ...(ended ? { task_result: { videos } } : {}),
    watermark_info: { enabled: false },
    created_at: createdAtMs,
    updated_at: createdAtMs,
  }
}

const taskId = (series, index) => `${series}${String(index).padStart(ID_DIGITS - 1, '0')}`

/** A task that exists upstream without a create: see `seed-tasks.mjs`. */
export function adoptedTask(index, createdAtMs) {
  const id = taskId(ADOPTED_SERIES, index)
  return { id, externalId: `000000000000.${id}`, createdAtMs }
}

const envelope = (data) => Buffer.from(JSON.stringify({ code: 0, message: 'SUCCEED', request_id: 'bench', data }))

/** The upstream's tasks. None changes after its create. */
export class VideoTasks {
  #tasks = new Map()

  create(body) {
    const { external_task_id: externalId = '' } = JSON.parse(body.toString())
    const ended = readOrders(body).ended === 1
    const task = { id: taskId(CREATED_SERIES, this.#tasks.size), externalId, createdAtMs: Date.now() }
    const answer = envelope(taskObject(task, ended))
    this.#tasks.set(task.id, answer)
    return answer
  }

  /** Knows `count` tasks more, which are under way. */
  adopt(count, createdAtMs) {
    for (let index = 0; index < count; index++) {
      const task = adoptedTask(index, createdAtMs)
      this.#tasks.set(task.id, envelope(taskObject(task, false)))
    }
  }

  /** undefined for an unknown task. */
  read(id) {
    return this.#tasks.get(id)
  }
}
