import type { RealtimeDialect } from '@multi-model-gateway/sandbox/realtime/realtime-dialect.js'
import type { RealtimeEvent } from './realtime-probe.js'
import { RealtimeSimulatorLab } from './realtime-simulator-lab.js'

/** A session that is spoken with in text. */
export class ConversationLab extends RealtimeSimulatorLab {
  readonly start = async (dialect: RealtimeDialect, options: { paceMs?: number } = {}): Promise<void> => {
    await this.connect(dialect, options)
    await this.probe.next(dialect === 'beta' ? 'conversation.created' : 'session.created')
  }

  /** Adds a message of the user; `more` lies over the item. */
  readonly say = (text: string, more: object = {}): void => {
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }], ...more }
    this.probe.send({ type: 'conversation.item.create', item })
  }
}

/** The setting that lets a response be text alone. */
export const textIn = (dialect: RealtimeDialect): object =>
  dialect === 'ga' ? { output_modalities: ['text'] } : { modalities: ['text'] }

/** The first event that tells of a new item. */
export const nameIn = (dialect: RealtimeDialect): string =>
  dialect === 'ga' ? 'conversation.item.added' : 'conversation.item.created'

export const responseOf = (event: RealtimeEvent | undefined): RealtimeEvent => event?.['response'] as RealtimeEvent
