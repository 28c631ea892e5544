import type { GatewayConfig } from '../config/settings.js'
import type { MetricsSnapshot } from '../observability/metrics.js'

/** What became of the configuration when the primary read it again. */
export type ReloadVerdict =
  | {
      readonly config: GatewayConfig
      /** Settings that changed but are in `config` as they run. */
      readonly needsRestart: readonly string[]
    }
  | { readonly faults: readonly string[] }

/** What a worker begins with. */
export interface WorkerStart {
  readonly config: GatewayConfig
}

/** What the primary tells a worker. Signals to a worker itself are ignored: terminals and service managers send them to all. */
export type OrderToWorker =
  | ({ readonly order: 'begin' } & WorkerStart)
  | { readonly order: 'reload'; readonly verdict: ReloadVerdict }
  /** The same, to the worker that had asked. */
  | { readonly order: 'answer'; readonly verdict: ReloadVerdict }
  | { readonly order: 'drain'; readonly signal: string }
  /** Now, whatever runs; what is not stored is kept. */
  | { readonly order: 'exit' }
  | { readonly order: 'metrics'; readonly id: number }

/** What a worker tells the primary. What is sent to a worker that does not listen yet is lost: it says first when it does. */
export type NewsOfWorker =
  | { readonly news: 'here' }
  /** The administrator wants the configuration to be read again. */
  | { readonly news: 'asks-reload' }
  | { readonly news: 'listening'; readonly address: string }
  | { readonly news: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot }
