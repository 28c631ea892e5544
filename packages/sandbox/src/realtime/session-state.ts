import { fieldOf, isObject, type JsonObject } from '../server/json-value.js'
import { betaDefaults, betaSession } from './beta-rules.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { RealtimeRejection } from './realtime-rejection.js'
import { sessionFacts, type SessionFacts } from './session-config.js'
import { gaDefaults, gaSession } from './session-rules.js'

export interface SessionIdentity {
  readonly id: string
  readonly model: string
  /** Unix seconds. */
  readonly expiresAt: number
}

/** The session object of one connection, in the dialect of that connection. */
export class SessionState {
  #session: JsonObject
  #facts: SessionFacts

  constructor(
    private readonly dialect: RealtimeDialect,
    identity: SessionIdentity,
  ) {
    const { id, model, expiresAt } = identity
    const head = dialect === 'ga' ? { type: 'realtime', object: 'realtime.session' } : { object: 'realtime.session' }
    this.#session = { ...head, id, model, expires_at: expiresAt, ...(dialect === 'ga' ? gaDefaults : betaDefaults) }
    this.#facts = sessionFacts(dialect, this.#session)
  }

  get object(): JsonObject {
    return this.#session
  }

  get facts(): SessionFacts {
    return this.#facts
  }

  /**
   * Applies the `session` of a `session.update`: only what is given changes. `voiceIsFixed` once the model has spoken.
   * Throws RealtimeRejection and changes nothing when anything is wrong.
   */
  update(change: unknown, voiceIsFixed: boolean): void {
    const check = this.dialect === 'ga' ? gaSession : betaSession
    const checked = check(change, 'session') as JsonObject
    this.#refuseChanges(checked, voiceIsFixed)
    this.#session = merge(this.#session, checked)
    this.#facts = sessionFacts(this.dialect, this.#session)
  }

  #refuseChanges(change: JsonObject, voiceIsFixed: boolean): void {
    if (change['type'] === 'transcription') {
      const message = 'Passing a transcription session update event to a realtime session is not allowed.'
      throw new RealtimeRejection('invalid_session_type', message, 'session.type')
    }
    if (change['model'] !== undefined && change['model'] !== this.#session['model']) {
      throw new RealtimeRejection('invalid_value', "Cannot update a session's model.", 'session.model')
    }
    const isGa = this.dialect === 'ga'
    const voice = isGa ? fieldOf(fieldOf(change['audio'], 'output'), 'voice') : change['voice']
    if (!voiceIsFixed || voice === undefined) return
    if (JSON.stringify(voice) === JSON.stringify(this.facts.voice)) return
    const message = "Cannot update a conversation's voice if assistant audio is present."
    throw new RealtimeRejection('cannot_update_voice', message, isGa ? 'session.audio.output.voice' : 'session.voice')
  }
}

/** Only the `audio` tree is merged member by member; everything else is replaced as a whole. */
function merge(session: JsonObject, change: JsonObject): JsonObject {
  const audio = session['audio']
  const newAudio = change['audio']
  if (!isObject(audio) || !isObject(newAudio)) return { ...session, ...change }
  const side = (name: string): object => ({ ...part(audio[name]), ...part(newAudio[name]) })
  return { ...session, ...change, audio: { input: side('input'), output: side('output') } }
}

function part(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}
