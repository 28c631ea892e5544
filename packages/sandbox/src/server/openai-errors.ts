import type { FaultAnswer, FaultDialect, StatusFault } from './faults.js'
import { OpenAiRejection, unknownModel } from './openai-rejection.js'

export interface OpenAiFaultOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly render: (body: Readonly<Record<string, unknown>>) => string
  /** Line end of event streams: LF on chat, CRLF on audio. */
  readonly lineEnd: '\n' | '\r\n'
}

/** The faults of the OpenAI family. Error frames are followed by the usual terminator. */
export function openAiFaults(options: OpenAiFaultOptions): FaultDialect {
  return {
    statusAnswer: (fault) => renderRejection(rejectionOf(fault), options),
    errorFrames: () => {
      const body = JSON.stringify(rejectionOf('500').body)
      return [`data: ${body}`, 'data: [DONE]'].map((line) => line + options.lineEnd.repeat(2))
    },
  }
}

export function renderRejection(rejection: OpenAiRejection, options: OpenAiFaultOptions): FaultAnswer {
  const limitHeaders = /^x-ratelimit-/
  const shown = Object.entries(options.headers).filter(([name]) => rejection.status !== 401 || !limitHeaders.test(name))
  const headers = { ...Object.fromEntries(shown), 'content-type': 'application/json', ...rejection.details.headers }
  return { status: rejection.status, headers, body: options.render(rejection.body) }
}

const PLATFORM = 'https://platform.openai.com'

function rejectionOf(fault: StatusFault): OpenAiRejection {
  switch (fault) {
    case '400':
      return new OpenAiRejection(400, "Invalid value: '#400'.", { code: 'invalid_value' })
    case '401':
      return new OpenAiRejection(
        401,
        `Incorrect API key provided: sk-ab***yz. You can find your API key at ${PLATFORM}/account/api-keys.`,
        { code: 'invalid_api_key', headers: { 'content-type': 'application/json; charset=utf-8' } },
      )
    case '402':
      return new OpenAiRejection(402, 'Your account has no credit left.', {
        type: 'billing_error',
        code: 'credit_balance_exhausted',
      })
    case '403':
      return new OpenAiRejection(403, 'Project `proj_simulated` does not have access to model `this-model`', {
        code: 'model_not_found',
      })
    case '404':
      return unknownModel('this-model')
    case '413':
      return new OpenAiRejection(413, 'Maximum content size limit (26214400) exceeded (26306794 bytes read)', {
        type: 'server_error',
      })
    case '422':
      return new OpenAiRejection(422, 'The request was well formed but could not be processed.')
    case '429':
    case 'quota':
      return rateRejection(fault)
    case '500':
      return new OpenAiRejection(500, 'The server had an error while processing your request. Sorry about that!', {
        type: 'server_error',
      })
    case '503':
    case '529':
      return new OpenAiRejection(Number(fault), 'The engine is currently overloaded, please try again later.', {
        type: 'server_error',
      })
  }
}

function rateRejection(fault: '429' | 'quota'): OpenAiRejection {
  if (fault === 'quota') {
    const message = 'You exceeded your current quota, please check your plan and billing details.'
    return new OpenAiRejection(429, message, { type: 'insufficient_quota', code: 'insufficient_quota' })
  }
  const limit = 'on requests per min (RPM): Limit 50, Used 50, Requested 1. Please try again in 1.2s.'
  const message = `Rate limit reached for this-model in organization org-simulated ${limit} Visit ${PLATFORM}/account/rate-limits to learn more.`
  return new OpenAiRejection(429, message, {
    type: 'requests',
    code: 'rate_limit_exceeded',
    headers: { 'retry-after': '2', 'retry-after-ms': '1200', 'x-ratelimit-remaining-requests': '0' },
  })
}
