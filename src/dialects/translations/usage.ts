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
export type ReportedFigures = Omit<TokenFigures, 'input' | 'output'> & {
  readonly input: number | undefined
  readonly output: number | undefined
}

/** undefined where one is missing that has no default. */
export function completeFigures(figures: ReportedFigures | undefined): TokenFigures | undefined {
  const { input, output } = figures ?? {}
  return figures === undefined || input === undefined || output === undefined
    ? undefined
    : { ...figures, input, output }
}

const NONE_REPORTED: ReportedFigures = {
  input: undefined,
  cacheRead: 0,
  cacheWrite: 0,
  output: undefined,
  reasoning: undefined,
}

/** With an estimate for each that is missing and has no default. */
export const filledFigures = (
  reported: ReportedFigures = NONE_REPORTED,
  estimates: { readonly input: () => number; readonly output: () => number },
): TokenFigures => ({
  ...reported,
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
    cacheRead: count(prompt['cached_tokens']) ?? 0,
    cacheWrite: count(prompt['cache_write_tokens']) ?? 0,
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
