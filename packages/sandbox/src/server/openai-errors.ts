import type { Exchange } from './exchange.js'
import type { FaultAnswer, FaultDialect, StatusFault } from './faults.js'

/** What an OpenAI-style upstream says when it refuses a request. Thrown by the judges, rendered by the simulator. */
export class OpenAiRejection extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly details: {
      readonly type?: string
      readonly param?: string | null
      readonly code?: string | null
      readonly headers?: Readonly<Record<string, string>>
      /** Keys beside `error`, as some transcription errors carry them. */
      readonly siblings?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(message)
  }

  /** The error envelope; all four keys are always present. */
  get body(): Readonly<Record<string, unknown>> {
    const { type = 'invalid_request_error', param = null, code = null, siblings = {} } = this.details
    return { error: { message: this.message, type, param, code }, ...siblings }
  }
}

/** Refuses with 400 `invalid_request_error`. */
export function reject(message: string, param: string | null = null, code: string | null = null): never {
  throw new OpenAiRejection(400, message, { param, code })
}

export function unknownModel(model: string): OpenAiRejection {
  return new OpenAiRejection(404, `The model \`${model}\` does not exist or you do not have access to it.`, {
    code: 'model_not_found',
    headers: { 'content-type': 'application/json; charset=utf-8' },
  })
}

/** Judges a Bearer credential. Without `expectedKey` every key but `bad` is accepted. Throws the 401 of the upstream. */
export function judgeBearer(authorization: string | undefined, expectedKey: string | undefined): void {
  const key = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1]
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  if (key === undefined) {
    const hint = 'You need to provide your API key in an Authorization header using Bearer auth'
    const message = `You didn't provide an API key. ${hint} (i.e. Authorization: Bearer YOUR_KEY).`
    throw new OpenAiRejection(401, message, { headers })
  }
  const accepted = expectedKey === undefined ? key !== 'bad' : key === expectedKey
  if (accepted) return
  const masked = `${key.slice(0, 5)}***${key.slice(-2)}`
  const advice = 'You can find your API key at https://platform.openai.com/account/api-keys.'
  throw new OpenAiRejection(401, `Incorrect API key provided: ${masked}. ${advice}`, {
    code: 'invalid_api_key',
    headers,
  })
}

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

/** Sends the refusal that a request caused; any other error is thrown again. */
export async function sendRejection(exchange: Exchange, error: unknown, options: OpenAiFaultOptions): Promise<void> {
  if (!(error instanceof OpenAiRejection)) throw error
  const { status, headers, body } = renderRejection(error, options)
  await exchange.send(status, headers, body)
}

function renderRejection(rejection: OpenAiRejection, options: OpenAiFaultOptions): FaultAnswer {
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
