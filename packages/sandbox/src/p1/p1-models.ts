import type { Exchange } from '../server/exchange.js'
import { openAiFaults, OpenAiRejection, unknownModel } from '../server/openai-errors.js'
import { isReasoning, OPEN_MODEL } from './chat-models.js'
import { EMBEDDING_MODEL_IDS } from './embeddings.simulator.js'
import { type P1Context, p1Headers } from './p1-context.js'

export type P1Family =
  | 'chat'
  | 'reasoning-chat'
  | 'audio-chat'
  | 'tts'
  | 'tts-style'
  | 'whisper'
  | 'transcribe'
  | 'diarize'
  | 'gpt-transcribe'

/** Known models: family, and the dated name answers carry where it differs from the one asked for. */
const MODELS: Readonly<Record<string, { family: P1Family; resolved?: string }>> = {
  'gpt-4o': { family: 'chat', resolved: 'gpt-4o-2024-08-06' },
  'gpt-4o-mini': { family: 'chat', resolved: 'gpt-4o-mini-2024-07-18' },
  'gpt-4.1': { family: 'chat', resolved: 'gpt-4.1-2025-04-14' },
  'gpt-4.1-mini': { family: 'chat', resolved: 'gpt-4.1-mini-2025-04-14' },
  'gpt-4.1-nano': { family: 'chat', resolved: 'gpt-4.1-nano-2025-04-14' },
  'gpt-5': { family: 'reasoning-chat', resolved: 'gpt-5-2025-08-07' },
  'gpt-5-mini': { family: 'reasoning-chat', resolved: 'gpt-5-mini-2025-08-07' },
  'gpt-5-nano': { family: 'reasoning-chat', resolved: 'gpt-5-nano-2025-08-07' },
  'gpt-5.1': { family: 'reasoning-chat', resolved: 'gpt-5.1-2025-11-13' },
  'gpt-5.2': { family: 'reasoning-chat', resolved: 'gpt-5.2-2025-12-11' },
  'gpt-5.4': { family: 'reasoning-chat' },
  'gpt-5.4-mini': { family: 'reasoning-chat', resolved: 'gpt-5.4-mini-2026-03-17' },
  'gpt-5.5': { family: 'reasoning-chat', resolved: 'gpt-5.5-2026-04-23' },
  o1: { family: 'reasoning-chat', resolved: 'o1-2024-12-17' },
  o3: { family: 'reasoning-chat', resolved: 'o3-2025-04-16' },
  'o3-mini': { family: 'reasoning-chat', resolved: 'o3-mini-2025-01-31' },
  'o4-mini': { family: 'reasoning-chat', resolved: 'o4-mini-2025-04-16' },
  [OPEN_MODEL]: { family: 'chat' },
  'gpt-audio': { family: 'audio-chat', resolved: 'gpt-audio-2025-08-28' },
  'gpt-audio-1.5': { family: 'audio-chat' },
  'gpt-audio-mini': { family: 'audio-chat', resolved: 'gpt-audio-mini-2025-10-06' },
  'gpt-4o-audio-preview': { family: 'audio-chat', resolved: 'gpt-4o-audio-preview-2025-06-03' },
  'gpt-4o-mini-audio-preview': { family: 'audio-chat', resolved: 'gpt-4o-mini-audio-preview-2024-12-17' },
  'tts-1': { family: 'tts' },
  'tts-1-hd': { family: 'tts' },
  'gpt-4o-mini-tts': { family: 'tts-style' },
  'gpt-4o-mini-tts-2025-12-15': { family: 'tts-style' },
  'whisper-1': { family: 'whisper' },
  'gpt-4o-transcribe': { family: 'transcribe' },
  'gpt-4o-mini-transcribe': { family: 'transcribe' },
  'gpt-4o-mini-transcribe-2025-12-15': { family: 'transcribe' },
  'gpt-4o-transcribe-diarize': { family: 'diarize' },
  'gpt-transcribe': { family: 'gpt-transcribe' },
}

const P1_MODEL_IDS = [...Object.keys(MODELS), ...EMBEDDING_MODEL_IDS]

const CHAT_FAMILIES: readonly P1Family[] = ['chat', 'reasoning-chat', 'audio-chat']
const SPEECH_FAMILIES: readonly P1Family[] = ['tts', 'tts-style']

/** The dated name an answer carries. */
export function resolvedModel(model: string): string {
  return (Object.hasOwn(MODELS, model) ? MODELS[model]?.resolved : undefined) ?? model
}

const NOT_A_CHAT_MODEL =
  'This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?'

/** Served on another endpoint of the real upstream only. */
const RESPONSES_ONLY =
  /(-pro|-codex(-m\w+)?|-deep-research|^computer-use-preview|^codex-mini-latest)(-20\d\d-\d\d-\d\d)?$/

/**
 * Family on the chat path. Ids the table does not know are chat models, unless they begin with `missing-` or are
 * models of another endpoint.
 */
export function chatFamily(model: string): P1Family {
  const known = knownFamily(model)
  if (known !== undefined) {
    if (CHAT_FAMILIES.includes(known)) return known
    throw unknownModel(model)
  }
  if (EMBEDDING_MODEL_IDS.includes(model)) throw new OpenAiRejection(404, NOT_A_CHAT_MODEL, { param: 'model' })
  if (RESPONSES_ONLY.test(model)) {
    const message = 'This model is only supported in v1/responses and not in v1/chat/completions.'
    throw new OpenAiRejection(404, message, { param: 'model' })
  }
  if (/(^|-)audio(-|$)/.test(model)) return 'audio-chat'
  return isReasoning(model) ? 'reasoning-chat' : 'chat'
}

/** Family on the path of responses: those of chat without the ones that speak, and those of this path alone. */
export function responsesFamily(model: string): P1Family {
  const known = knownFamily(model)
  if (known === undefined && RESPONSES_ONLY.test(model)) return 'reasoning-chat'
  const isElsewhere = known !== undefined && !CHAT_FAMILIES.includes(known)
  if (isElsewhere || EMBEDDING_MODEL_IDS.includes(model) || model === OPEN_MODEL) throw unknownModel(model)
  const family = chatFamily(model)
  if (family !== 'audio-chat') return family
  const message = `The requested model '${model}' cannot be used with the Responses API.`
  throw new OpenAiRejection(400, message, { param: 'model' })
}

/** Family on the speech path. */
export function speechFamily(model: string): P1Family {
  const family = knownFamily(model) ?? (/(^|-)tts(-|$)/.test(model) ? guessedSpeech(model) : undefined)
  if (family === undefined || !SPEECH_FAMILIES.includes(family)) throw unknownModel(model)
  return family
}

/** Family on the transcription path. */
export function transcriptionFamily(model: string): P1Family {
  const family = knownFamily(model) ?? guessedTranscription(model)
  if (family === undefined || CHAT_FAMILIES.includes(family) || SPEECH_FAMILIES.includes(family))
    throw unknownModel(model)
  return family
}

function knownFamily(model: string): P1Family | undefined {
  if (model.startsWith('missing-')) throw unknownModel(model)
  return Object.hasOwn(MODELS, model) ? MODELS[model]?.family : undefined
}

function guessedSpeech(model: string): P1Family {
  return model.startsWith('gpt-') ? 'tts-style' : 'tts'
}

function guessedTranscription(model: string): P1Family | undefined {
  if (model.includes('diarize')) return 'diarize'
  if (model.startsWith('gpt-') && model.includes('transcribe')) return 'transcribe'
  return model.includes('whisper') ? 'whisper' : undefined
}

/** GET /v1/models and /v1/models/{id}. */
export async function serveModels(exchange: Exchange, _context: P1Context): Promise<void> {
  const headers = { ...p1Headers(exchange, { tokenLimits: false }), 'content-type': 'application/json' }
  const render = (body: object): string => `${JSON.stringify(body, null, 2)}\n`
  if (await exchange.answeredByFault(openAiFaults({ headers, render, lineEnd: '\n' }), undefined)) return
  const models = P1_MODEL_IDS.map((id) => ({ id, object: 'model', created: 1_686_935_002, owned_by: 'system' }))
  const id = exchange.request.path.split('/')[3]
  const wanted = id === undefined ? undefined : models.find((model) => model.id === decodeURIComponent(id))
  if (id !== undefined && wanted === undefined) throw unknownModel(decodeURIComponent(id))
  await exchange.send(200, headers, render(wanted ?? { object: 'list', data: models }))
}
