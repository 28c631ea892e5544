import type { Call } from '../http/call.js'
import type { CallOutcome } from '../observability/call-endings.js'
import { countedUnits } from '../usage/counted-units.js'
import type { TokensAndAudio } from './allowance.js'

const ERRORS_FROM = 400

/**
 * What a call that is over has used. A unit of which its usage says nothing is absent where what was expected of the
 * call has to do (its answer was complete or on its way), and 0 where nobody was served.
 */
export function usedBy({ log, departure }: Call, outcome: CallOutcome): TokensAndAudio {
  const hasFailed = !outcome.left && outcome.status >= ERRORS_FROM
  if (hasFailed || log.tried.length === 0) return NOTHING
  const known = log.usage === undefined ? {} : tokensAndAudio(log.usage.units)
  const isServed = departure.left ? log.bytesOut > 0 : log.failure === undefined
  return isServed ? known : { ...NOTHING, ...known }
}

const NOTHING: Required<TokensAndAudio> = { tokens: 0, audioSeconds: 0 }

/** Prompt and completion together; seconds where the upstream counts any. */
export function tokensAndAudio(units: Parameters<typeof countedUnits>[0]): TokensAndAudio {
  const { promptTokens, completionTokens, audioSeconds } = countedUnits(units)
  const hasTokens = promptTokens !== undefined || completionTokens !== undefined
  return {
    ...(hasTokens ? { tokens: (promptTokens ?? 0) + (completionTokens ?? 0) } : {}),
    ...(audioSeconds === undefined ? {} : { audioSeconds }),
  }
}
