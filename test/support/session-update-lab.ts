import type { RealtimeDialect } from '@multi-model-gateway/sandbox/realtime/realtime-dialect.js'
import type { RealtimeEvent } from './realtime-probe.js'
import { RealtimeSimulatorLab } from './realtime-simulator-lab.js'

export const TOOL = { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }

/** A session whose settings are changed. */
export class SessionUpdateLab extends RealtimeSimulatorLab {
  readonly start = async (dialect: RealtimeDialect): Promise<void> => {
    await this.connect(dialect)
    await this.probe.next('session.created')
  }

  /** The error that answers the update. */
  readonly updateRefusal = (session: unknown): Promise<RealtimeEvent> =>
    this.refusal({ type: 'session.update', session })

  /** The session after the update. */
  readonly updated = async (session: unknown): Promise<RealtimeEvent> => {
    this.probe.send({ type: 'session.update', session })
    const event = await this.probe.next('session.updated')
    return event['session'] as RealtimeEvent
  }
}
