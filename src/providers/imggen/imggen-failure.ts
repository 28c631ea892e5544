import { GatewayError } from '../../core/gateway-error.js'
import { scrubMessage } from '../../core/message-text.js'
import { accountRefusal } from '../../upstream/account-refusal.js'
import {
  ACCOUNT_STATUSES,
  FAILED,
  type FaultRow,
  IMGGEN_CODES,
  NO_ACCOUNT,
  NOT_FOUND_CODE,
  OTHER_STATUSES,
  UNKNOWN_TASK,
} from './imggen-codes.table.js'
import { type ImggenAnswer, isSuccessful } from './imggen-wire.js'

export interface ImggenCredentials {
  readonly secret: string
  readonly callersKey: boolean
}

/** Each member of the family has a way of its own to say that it knows no such task; a page of some proxy is none. */
export function saysUnknownTask(answer: ImggenAnswer): boolean {
  const { httpStatus, isPage, words, code } = answer
  if (isPage || NO_ACCOUNT.test(words)) return false
  if (httpStatus === 404) return true
  if (isSuccessful(answer) && answer.isEmpty) return true
  if (!isSuccessful(answer) && httpStatus !== 400) return false
  return code === NOT_FOUND_CODE || UNKNOWN_TASK.test(words)
}

/** The failure that an answer without a task is. The upstream's words are shown only where the fault is the caller's. */
export function imggenFailure(answer: ImggenAnswer, { secret, callersKey }: ImggenCredentials): GatewayError {
  const verdict = `status ${answer.httpStatus}${answer.code === undefined ? '' : `, code ${answer.code}`}`
  const words = scrubMessage(answer.words.replaceAll(secret, '[key]'))
  const cause = words === '' ? verdict : `${verdict}: ${words}`
  const row = rowOf(answer)
  switch (row.fault) {
    case 'caller': {
      const message = words === '' ? `The upstream refused the request (${verdict}).` : words
      const code = row.word === undefined ? {} : { code: row.word }
      return new GatewayError(row.kind, message, { cause, attempt: { phase: 'answered' }, ...code })
    }
    case 'upstream':
      return isSuccessful(answer) && answer.code === undefined
        ? unreadableAnswer(cause)
        : brokenDown('The upstream failed.', cause)
    case 'key':
    case 'access':
    case 'quota':
    case 'busy':
      return accountRefusal(row.fault, callersKey, { cause, retryAfterSeconds: answer.retryAfterSeconds ?? 1 })
  }
}

export const unreadableAnswer = (cause: string): GatewayError =>
  brokenDown('The upstream answered with something that cannot be read.', cause)

const brokenDown = (message: string, cause: string): GatewayError =>
  new GatewayError('upstream_failed', message, { cause, attempt: { phase: 'answered', channelFault: true } })

function rowOf({ httpStatus, isPage, code }: ImggenAnswer): FaultRow {
  if (isPage) return httpStatus === 429 ? (OTHER_STATUSES[429] ?? FAILED) : FAILED
  const byCode = code === undefined ? undefined : IMGGEN_CODES[code]
  return (
    ACCOUNT_STATUSES[httpStatus] ??
    (httpStatus >= 500 ? FAILED : undefined) ??
    byCode ??
    OTHER_STATUSES[httpStatus] ??
    FAILED
  )
}
