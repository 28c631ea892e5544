import type { RawObject } from '../../core/json-object.js'
import { flattenAudio, nestAudio, SESSION_SETTINGS } from './audio-settings.js'
import { modalitiesToBeta, modalitiesToGa } from './modalities.js'
import type { CallersWords } from './session-state.js'

/** What beta answers with when the caller set nothing. */
export const DEFAULT_TEMPERATURE = '0.8'

export type SessionKind = 'realtime' | 'transcription'

/** A beta session, or the changed part of one, with the keys of GA. `type` is what GA cannot do without. */
export function sessionToGa(session: RawObject, kind: SessionKind = 'realtime'): void {
  const modalities = session.get('modalities')
  nestAudio(session, SESSION_SETTINGS)
  if (kind === 'transcription') session.take('modalities')
  else if (modalities !== undefined) {
    session.set('modalities', modalitiesToGa(modalities))
    session.rename('modalities', 'output_modalities')
  }
  session.rename('max_response_output_tokens', 'max_output_tokens')
  session.take('temperature')
  session.take('client_secret')
  if (!session.has('type')) session.setFirst('type', JSON.stringify(kind))
}

/** A GA session, or the changed part of one, with the keys of beta. */
export function sessionToBeta(session: RawObject, { modalities: callersWords }: CallersWords = {}): void {
  const modalities = session.get('output_modalities')
  flattenAudio(session, SESSION_SETTINGS)
  if (modalities !== undefined) {
    session.set('output_modalities', modalitiesToBeta(modalities, [callersWords]))
    session.rename('output_modalities', 'modalities')
  }
  session.rename('max_output_tokens', 'max_response_output_tokens')
  session.take('type')
}

/** The same for a session that a server shows: with the keys every beta session has and GA knows nothing of. */
export function shownSessionToBeta(session: RawObject, words: CallersWords): void {
  const isTranscription = session.text('type') === 'transcription'
  sessionToBeta(session, words)
  if (!isTranscription && !session.has('temperature'))
    session.set('temperature', words.temperature ?? DEFAULT_TEMPERATURE)
  if (!session.has('client_secret')) session.set('client_secret', 'null')
}
