import type { MetricsSnapshot } from '../common/observability/metrics.js'

/** What the primary tells a worker. Signals to a worker itself are ignored: terminals and service managers send them to all. */
export type OrderToWorker =
  | { readonly order: 'begin'; readonly worker: number; readonly workers: number }
  | { readonly order: 'reload' }
  | { readonly order: 'drain'; readonly signal: string }
  | { readonly order: 'metrics'; readonly id: number }

/** What a worker tells the primary. What is sent to a worker that does not listen yet is lost: it says first when it does. */
export type NewsOfWorker =
  | { readonly news: 'here' }
  /** The administrator asked this one to read the configuration again; the others are to do the same. */
  | { readonly news: 'reloaded' }
  | { readonly news: 'listening'; readonly address: string }
  | { readonly news: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot }
