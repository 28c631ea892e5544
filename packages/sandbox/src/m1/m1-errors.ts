import type { FaultAnswer, FaultDialect, StatusFault } from '../server/faults.js'

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  409: 'conflict_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** What M1 says when it refuses a request. */
export class M1Rejection extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
  }
}

/** Refuses with 400 `invalid_request_error`. */
export function reject(message: string): never {
  throw new M1Rejection(400, message)
}

/** The error form of section 7 of the messages notes; the request id is the one of the header. */
export function renderM1(rejection: M1Rejection, headers: Readonly<Record<string, string>>): FaultAnswer {
  const type = TYPES[rejection.status] ?? 'api_error'
  const requestId = headers['request-id'] ?? ''
  const body = { type: 'error', error: { type, message: rejection.message }, request_id: requestId }
  return {
    status: rejection.status,
    headers: { ...headers, 'content-type': 'application/json', ...rejection.headers },
    body: JSON.stringify(body),
  }
}

export function m1Faults(headers: Readonly<Record<string, string>>): FaultDialect {
  return {
    statusAnswer: (fault) => renderM1(rejectionOf(fault), headers),
    errorFrames: () => {
      const error = { type: 'overloaded_error', message: 'Overloaded' }
      const event = { type: 'error', error, request_id: headers['request-id'] ?? '' }
      return [`event: error\ndata: ${JSON.stringify(event)}\n\n`]
    },
  }
}

function rejectionOf(fault: StatusFault): M1Rejection {
  switch (fault) {
    case '400':
      return new M1Rejection(400, 'messages: Input should be a valid list')
    case '401':
      return new M1Rejection(401, 'invalid x-api-key')
    case '402':
      return new M1Rejection(402, 'There is an issue with your billing or payment information.')
    case '403':
      return new M1Rejection(403, 'Your API key does not have permission to use the specified resource.')
    case '404':
      return new M1Rejection(404, 'model: this-model')
    case '413':
      return new M1Rejection(413, 'Request exceeds the maximum size')
    case '422':
      return new M1Rejection(422, 'The request was well formed but could not be processed.')
    case '429':
      return new M1Rejection(
        429,
        "This request would exceed your organization's rate limit of 50 requests per minute.",
        {
          'retry-after': '2',
          'retry-after-ms': '1200',
          'anthropic-ratelimit-requests-remaining': '0',
        },
      )
    case 'quota':
      return new M1Rejection(400, 'Your credit balance is too low to access the API. Please purchase credits.')
    case '500':
    case '503':
      return new M1Rejection(Number(fault), 'Internal server error')
    case '529':
      return new M1Rejection(529, 'Overloaded', { 'retry-after': '2' })
  }
}
