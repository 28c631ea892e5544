import type { Exchange } from '../server/exchange.js'
import type { TaskClock } from '../tasks/task-clock.js'
import { mp4File } from './mp4-file.js'
import { hasWatermark, MEDIA_LIFETIME_MS, videoFacts } from './vidgen-task.js'
import type { VidgenTasks } from './vidgen-tasks.js'

/** Answers a GET of a video's link: 404 when there is none, or not any more. A credential sent along is a violation. */
export async function serveMedia(exchange: Exchange, tasks: VidgenTasks, clock: TaskClock): Promise<void> {
  const { request } = exchange
  for (const name of ['authorization', 'x-api-key', 'cookie']) {
    if (request.headers[name] !== undefined) request.violations.push(`credential sent to a video link: ${name}`)
  }
  const [, id = '', watermark] = /^\/media\/(\d+)(-watermark)?\.mp4$/.exec(request.path) ?? []
  const task = tasks.find(id)
  const isThere =
    task?.status === 'succeed' &&
    task.updatedAtMs + MEDIA_LIFETIME_MS > clock.nowMs() &&
    (watermark === undefined || hasWatermark(task))
  if (isThere) await exchange.send(200, { 'content-type': 'video/mp4' }, mp4File(videoFacts(task)))
  else await exchange.send(404, { 'content-type': 'application/xml' }, '<Error><Code>NoSuchKey</Code></Error>')
}
