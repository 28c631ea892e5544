import type { Worker } from 'node:cluster'
import type { MetricsSnapshot } from '../observability/metrics.js'
import type { NewsOfWorker } from './worker-messages.js'

/** Of a worker that does not tell its metrics by then there is what it had counted before. */
const METRICS_DEADLINE_MS = 3_000

/** What a worker tells when it is asked by that id; nothing when it does not in time, or ends before. */
export function toldBy(worker: Worker, id: number): Promise<MetricsSnapshot> {
  return new Promise((resolve) => {
    const hear = (news: NewsOfWorker): void => {
      if (news.news === 'metrics' && news.id === id) end(news.snapshot)
    }
    const leave = (): void => {
      end([])
    }
    const end = (snapshot: MetricsSnapshot): void => {
      clearTimeout(timer)
      worker.off('message', hear)
      worker.off('exit', leave)
      resolve(snapshot)
    }
    const timer = setTimeout(leave, METRICS_DEADLINE_MS)
    worker.on('message', hear)
    worker.once('exit', leave)
  })
}
