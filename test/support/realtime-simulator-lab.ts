import type { RealtimeDialect } from '@multi-model-gateway/sandbox/realtime/realtime-dialect.js'
import {
  type RealtimeSimulator,
  startRealtimeSimulator,
} from '@multi-model-gateway/sandbox/realtime/realtime.simulator.js'
import { type RealtimeEvent, RealtimeProbe } from './realtime-probe.js'

/** The realtime simulator and one client of it. */
export class RealtimeSimulatorLab {
  simulator!: RealtimeSimulator
  probe!: RealtimeProbe

  /** Starts the simulator and connects to it as a client of its dialect does. */
  readonly connect = async (dialect: RealtimeDialect, options: { paceMs?: number } = {}): Promise<void> => {
    this.simulator = await startRealtimeSimulator({ apiKey: 'test-key', dialect, ...options })
    const headers = dialect === 'beta' ? { 'openai-beta': 'realtime=v1' } : {}
    this.probe = await RealtimeProbe.open({ url: this.simulator.url, headers })
  }

  async close(): Promise<void> {
    await this.probe.close()
    await this.simulator.close()
  }

  /** The error that answers this event, which is sent with the id `ev_1`. */
  readonly refusal = async (event: RealtimeEvent): Promise<RealtimeEvent> => {
    this.probe.send({ ...event, event_id: 'ev_1' })
    return (await this.probe.next('error'))['error'] as RealtimeEvent
  }
}
