import { countedUnits } from '../core/counted-units.js'
import type { TokensAndAudio } from '../core/quota.js'
import type { Call, CallLog, Units } from '../core/request-context.js'
import type { CallOutcome } from '../observability/request-hooks.js'

const ERRORS_FROM = 400

/** What a speech has used of audio: counted by the gateway, which nobody charges for. */
const SPOKEN = 'spoken_seconds'

/**
 * What a call that is over has used. A unit of which its usage says nothing is absent where what was expected of the
 * call has to do (its answer was complete or on its way, or its caller left while the upstream worked), and 0 where
 * nobody was served. `hasAudio`: seconds are of interest.
 */
export function usedBy({ log, departure }: Call, outcome: CallOutcome, hasAudio: boolean): TokensAndAudio {
  const hasFailed = !outcome.left && outcome.status >= ERRORS_FROM
  if (hasFailed || log.tried.length === 0) return NOTHING
  const known = log.usage === undefined ? UNKNOWN : tokensAndAudio(log.usage.units)
  const audioSeconds = hasAudio ? (known.audioSeconds ?? countedSeconds(log)) : undefined
  const isPaid = departure.left ? log.bytesOut > 0 || (outcome.left && wasAtWork(log)) : log.failure === undefined
  if (!isPaid) return { tokens: known.tokens ?? 0, audioSeconds: audioSeconds ?? 0 }
  return { tokens: outcome.left && lacksAnswer(log) ? undefined : known.tokens, audioSeconds }
}

const NOTHING: TokensAndAudio = { tokens: 0, audioSeconds: 0 }
const UNKNOWN: TokensAndAudio = {}

/** Whether the last attempt was with its upstream when the caller left. */
function wasAtWork({ tried, upstreamMs }: CallLog): boolean {
  const failure = tried.at(-1)?.failure
  return upstreamMs > 0 && (failure === undefined || failure === 'caller_left')
}

/** An estimate of the prompt says nothing of the answer that the upstream was at. */
const lacksAnswer = ({ usage }: CallLog): boolean =>
  usage?.estimated === true && countedUnits(usage.units).completionTokens === undefined

/** Also where the upstream has reported its usage, but only in characters. */
function countedSeconds({ usage, meter }: CallLog): number | undefined {
  const seconds = usage?.units[SPOKEN] ?? meter?.usageSoFar()?.units[SPOKEN]
  return typeof seconds === 'number' ? seconds : undefined
}

/** Prompt and completion together; seconds where the upstream counts any. */
export function tokensAndAudio(units: Units): TokensAndAudio {
  const { promptTokens, completionTokens, audioSeconds } = countedUnits(units)
  const hasTokens = promptTokens !== undefined || completionTokens !== undefined
  return { tokens: hasTokens ? (promptTokens ?? 0) + (completionTokens ?? 0) : undefined, audioSeconds }
}
