import { expect } from '@jest/globals'
import { MESSAGES } from './m1-gateway.js'
import { type RawAnswer, type RawRequest, sendRaw } from './raw-http.js'

/** Of every request that is sent with `askAs`. */
export const REQUEST_ID = 'mine-1'

export const askAs = (key: string, { url }: { readonly url: string }, request: RawRequest): Promise<RawAnswer> =>
  sendRaw(url, {
    ...request,
    headers: { authorization: `Bearer ${key}`, 'x-request-id': REQUEST_ID, ...request.headers },
  })

/** What a refusal by a limit by the minute is called. */
export const BY_MINUTE = { code: 'rate_limit_exceeded', taskCode: 1302 }

/** The whole body of a refusal by a limit in the dialect of a route. */
export type RefusalBody = (words: {
  readonly message: string
  readonly code: string
  readonly taskCode: number
}) => object

export const inChat: RefusalBody = ({ message, code }) => ({
  error: { message, type: 'rate_limit_error', param: null, code },
})
export const inMessages: RefusalBody = ({ message }) => ({
  type: 'error',
  error: { type: 'rate_limit_error', message },
  request_id: REQUEST_ID,
})
export const inTasks: RefusalBody = ({ message, taskCode }) => ({ code: taskCode, message, request_id: REQUEST_ID })
export const inImages: RefusalBody = ({ message, taskCode }) => ({
  code: taskCode,
  message,
  request_id: REQUEST_ID,
  description: message,
})

/** Whatever tells of limits, or of trying again. */
export const limitHeaders = ({ headers }: Pick<RawAnswer, 'headers'>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /limit|retry/.test(name)))

const DURATION: unknown = expect.stringMatching(/^(?:1m0s|[1-5]?\ds|[1-9]\d{0,2}ms)$/)
const INSTANT: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)

/** The headers of one limit in the family of a path. */
export const shownLimit = (path: string, word: string, limit: number, remaining: number | string): object =>
  path.startsWith(MESSAGES)
    ? {
        [`anthropic-ratelimit-${word}-limit`]: String(limit),
        [`anthropic-ratelimit-${word}-remaining`]: String(remaining),
        [`anthropic-ratelimit-${word}-reset`]: INSTANT,
      }
    : {
        [`x-ratelimit-limit-${word}`]: String(limit),
        [`x-ratelimit-remaining-${word}`]: String(remaining),
        [`x-ratelimit-reset-${word}`]: DURATION,
      }
