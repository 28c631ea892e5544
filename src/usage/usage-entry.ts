import { GatewayError } from '../core/gateway-error.js'
import { ownerOf } from '../core/owner.js'
import type { Call } from '../core/request-context.js'
import type { UsageClass, UsageOutcome } from '../core/usage-record.js'
import type { CallOutcome } from '../observability/request-hooks.js'
import type { PriceTable } from './price-table.js'
import { LONGEST_NAME, type UsageNote } from './usage-note.js'

interface CountedRoute {
  readonly method: string
  /** Of its models, where none was found. */
  readonly usageClass: UsageClass
  /** What it is priced as, where it has no models. */
  readonly model?: string
  /** Its answers are recorded one by one. */
  readonly hasResponses?: true
}

/** Requests that make something. Reading tasks, models and limits is not counted. Routes are literal: no other spelling is served. */
const ROUTES: ReadonlyMap<string, CountedRoute> = new Map<string, CountedRoute>([
  ['/v1/chat/completions', { method: 'POST', usageClass: 'chat' }],
  ['/v1/messages', { method: 'POST', usageClass: 'messages' }],
  ['/v1/messages/count_tokens', { method: 'POST', usageClass: 'messages' }],
  ['/v1/audio/speech', { method: 'POST', usageClass: 'tts' }],
  ['/v1/audio/transcriptions', { method: 'POST', usageClass: 'stt-standard' }],
  ['/v1/audio/translations', { method: 'POST', usageClass: 'stt-standard' }],
  ['/v1/realtime', { method: 'GET', usageClass: 'realtime', hasResponses: true }],
  ['/v1/document/parse', { method: 'POST', usageClass: 'document', model: 'documents' }],
  ['/vidgen/v1/videos/multi-image2video', { method: 'POST', usageClass: 'video' }],
  ['/vidgen/v1/videos/text2video', { method: 'POST', usageClass: 'video' }],
])

/** No key guard has let anybody in. */
const NOBODY = '-'

/**
 * What a call that is over leaves to be recorded; undefined for routes that are not counted and for callers nobody knows.
 * Runs at the end of every call: nothing is formatted or parsed here.
 */
export function requestNote(call: Call, outcome: CallOutcome, prices: PriceTable): UsageNote | undefined {
  const { caller, log } = call
  const route = ROUTES.get(call.path)
  if (route === undefined || route.method !== call.method || caller.keyId === NOBODY) return undefined
  return {
    id: undefined,
    atMs: Date.now(),
    requestId: call.requestId,
    keyId: caller.keyId,
    ownerId: ownerOf(caller),
    kind: 'request',
    route: call.path,
    model: route.model ?? shortName(log.model),
    usageClass: route.model === undefined ? (log.modelClass ?? route.usageClass) : route.usageClass,
    channelId: log.channelId,
    outcome: outcomeWord(log.failure, outcome),
    durationMs: outcome.totalMs,
    usage: route.hasResponses === true ? undefined : log.usage,
    unitsText: log.unitsText,
    estimate: log.estimate,
    prices,
  }
}

/** A caller may write megabytes where the model stands; a part of a text would keep the whole of it, so this is a copy. */
function shortName(name: string | undefined): string | undefined {
  if (name === undefined || name.length <= LONGEST_NAME) return name
  return Buffer.from(name.slice(0, LONGEST_NAME)).toString()
}

function outcomeWord(failure: unknown, { left, status }: CallOutcome): UsageOutcome {
  if (left) return 'caller_left'
  if (failure === undefined) return status < 400 ? 'ok' : 'refused'
  if (!(failure instanceof GatewayError)) return 'refused'
  if (failure.kind === 'caller_left') return 'caller_left'
  return failure.kind === 'upstream_failed' || failure.kind === 'upstream_timeout' ? 'upstream_failed' : 'refused'
}
