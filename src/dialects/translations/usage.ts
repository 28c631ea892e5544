import { malformedResponse } from '../../upstream/upstream-response.js'
import { type Members, recordOr } from './members.js'

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

/** The answer to a question for the tokens of a request. Throws `upstream_failed` for one without a number. */
export function inputTokensIn({ input_tokens: tokens }: Members): number {
  const counted = count(tokens)
  if (counted === undefined) throw malformedResponse('The upstream counted no tokens.')
  return counted
}

/**
 * Tokens of an answer under one name each, whatever dialect said them. `input` holds what was read from and written to the cache, as
 * chat and responses count; messages count these beside it.
 */
export interface TokenFigures {
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
  /** Contained in `output`; undefined = not reported. */
  readonly reasoning: number | undefined
}

/** As an upstream reports them; what it leaves out is not known, and is no zero. */
export type ReportedFigures = { readonly [Name in keyof TokenFigures]: number | undefined }

/** undefined where one is missing that has no default. */
export function completeFigures(figures: ReportedFigures | undefined): TokenFigures | undefined {
  const { input, output } = figures ?? {}
  return figures === undefined || input === undefined || output === undefined
    ? undefined
    : { ...withDefaults(figures), input, output }
}

/** Of the cache: an upstream that says nothing of it has used none. */
const withDefaults = (figures: ReportedFigures) => ({
  ...figures,
  cacheRead: figures.cacheRead ?? 0,
  cacheWrite: figures.cacheWrite ?? 0,
})

/** Figures of a stream are totals, which replace earlier ones; what is not reported again stays. */
export function latestFigures(
  before: ReportedFigures | undefined,
  next: ReportedFigures | undefined,
): ReportedFigures | undefined {
  if (before === undefined || next === undefined) return next ?? before
  return {
    input: next.input ?? before.input,
    cacheRead: next.cacheRead ?? before.cacheRead,
    cacheWrite: next.cacheWrite ?? before.cacheWrite,
    output: next.output ?? before.output,
    reasoning: next.reasoning ?? before.reasoning,
  }
}

const NONE_REPORTED: ReportedFigures = {
  input: undefined,
  cacheRead: undefined,
  cacheWrite: undefined,
  output: undefined,
  reasoning: undefined,
}

/** With an estimate for each that is missing and has no default. */
export const filledFigures = (
  reported: ReportedFigures = NONE_REPORTED,
  estimates: { readonly input: () => number; readonly output: () => number },
): TokenFigures => ({
  ...withDefaults(reported),
  input: reported.input ?? estimates.input(),
  output: reported.output ?? estimates.output(),
})

/** Reads the usage object of a messages answer; undefined where the input or the output is missing. */
export function figuresOfMessages(usage: unknown): TokenFigures | undefined {
  const figures = recordOr(usage)
  const uncached = count(figures['input_tokens'])
  const cacheRead = count(figures['cache_read_input_tokens']) ?? 0
  const cacheWrite = count(figures['cache_creation_input_tokens']) ?? 0
  return completeFigures({
    input: uncached === undefined ? undefined : uncached + cacheRead + cacheWrite,
    cacheRead,
    cacheWrite,
    output: count(figures['output_tokens']),
    reasoning: count(recordOr(figures['output_tokens_details'])['thinking_tokens']),
  })
}

/** Reads the usage object of a chat completion. */
export function figuresOfChat(usage: unknown): ReportedFigures {
  const figures = recordOr(usage)
  const prompt = recordOr(figures['prompt_tokens_details'])
  return {
    input: count(figures['prompt_tokens']),
    cacheRead: count(prompt['cached_tokens']),
    cacheWrite: count(prompt['cache_write_tokens']),
    output: count(figures['completion_tokens']),
    reasoning: count(recordOr(figures['completion_tokens_details'])['reasoning_tokens']),
  }
}

/** The usage object of a chat completion. */
export const chatUsage = ({ input, cacheRead, cacheWrite, output, reasoning }: TokenFigures): object => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: reasoning ?? 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})

/** The usage object of a response. */
export const responseUsage = ({ input, cacheRead, cacheWrite, output, reasoning }: TokenFigures): object => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning ?? 0 },
  total_tokens: input + output,
})

/** The usage object of a message, every member of the type present. */
export const messagesUsage = ({ input, cacheRead, cacheWrite, output, reasoning }: TokenFigures): object => ({
  input_tokens: Math.max(0, input - cacheRead - cacheWrite),
  cache_creation_input_tokens: cacheWrite,
  cache_read_input_tokens: cacheRead,
  cache_creation: null,
  output_tokens: output,
  output_tokens_details: reasoning === undefined ? null : { thinking_tokens: reasoning },
  inference_geo: null,
  server_tool_use: null,
  service_tier: null,
  speed: null,
})
