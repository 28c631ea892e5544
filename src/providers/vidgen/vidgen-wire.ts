import { GatewayError } from '../../core/gateway-error.js'
import { scrubMessage } from '../../core/message-text.js'
import { accountRefusal } from '../../upstream/account-refusal.js'
import type { VidgenAnswer } from './vidgen-answer.js'
import { type CodeRow, FAILED, UNKNOWN_TASK, VIDGEN_CODES, VIDGEN_STATUSES } from './vidgen-codes.table.js'

/** What was asked, and with what. */
export interface VidgenRequest {
  /** A create that broke down may have made a task; a read has changed nothing. */
  readonly operation: 'create' | 'read'
  readonly callersKey: boolean
  readonly secrets: readonly string[]
}

/** Success by the upstream's word, or where it says none, by the status of an answer that can be read. */
export const isSuccess = ({ code, httpStatus, isReadable }: VidgenAnswer): boolean =>
  code === 0 || (code === undefined && isReadable && httpStatus >= 200 && httpStatus < 300)

/** A page of some proxy is no word about the task, whatever its status. */
export const saysUnknownTask = ({ code, httpStatus, isReadable }: VidgenAnswer): boolean =>
  code === UNKNOWN_TASK || (httpStatus === 404 && isReadable && knownRow(code) === undefined)

/** Whether the same request may be accepted with a newly signed token. */
export function saysStaleToken({ code }: VidgenAnswer): boolean {
  const row = knownRow(code)
  return row !== undefined && 'staleToken' in row
}

/** The failure that an answer without success is. The upstream's words are shown only where the fault is the caller's. */
export function vidgenFailure(answer: VidgenAnswer, request: VidgenRequest): GatewayError {
  const row = rowOf(answer)
  const verdict = answer.code === undefined ? `status ${answer.httpStatus}` : `code ${answer.code}`
  const words = wordsOf(answer, request)
  const cause = words === '' ? verdict : `${verdict}: ${words}`
  switch (row.fault) {
    case 'caller': {
      const message = words === '' ? `The upstream refused the request (${verdict}).` : words
      return new GatewayError(row.kind, message, { cause, attempt: { phase: 'answered' }, ...codeOf(row) })
    }
    case 'closed':
      return new GatewayError('upstream_failed', 'The upstream is closed for maintenance. Please try again later.', {
        cause,
        attempt: { phase: 'answered', channelFault: true },
        retryAfterSeconds: answer.retryAfterSeconds ?? row.retryAfterSeconds,
      })
    case 'upstream':
      return brokenDown(row.kind, `The upstream failed with ${verdict}.`, request, cause)
    case 'key':
    case 'access':
    case 'quota':
    case 'busy': {
      const retryAfterSeconds = answer.retryAfterSeconds ?? row.retryAfterSeconds ?? 1
      const { kind, message, details } = accountRefusal(row.fault, request.callersKey, { cause, retryAfterSeconds })
      return new GatewayError(kind, message, { ...details, ...codeOf(row) })
    }
  }
}

/** An answer that cannot be read, or holds no task that can be. */
export const unreadableAnswer = (request: Pick<VidgenRequest, 'operation'>, cause?: string): GatewayError =>
  brokenDown('upstream_failed', 'The upstream answered with something that cannot be read.', request, cause)

function brokenDown(
  kind: GatewayError['kind'],
  message: string,
  { operation }: Pick<VidgenRequest, 'operation'>,
  cause?: string,
): GatewayError {
  const isCreate = operation === 'create'
  return new GatewayError(kind, isCreate ? `${message} It may have made the task all the same.` : message, {
    ...(cause === undefined ? {} : { cause }),
    attempt: { phase: isCreate ? 'sent' : 'answered', channelFault: true },
    ...(isCreate ? { retryable: false } : {}),
  })
}

const knownRow = (code: number | undefined): CodeRow | undefined =>
  code === undefined ? undefined : VIDGEN_CODES[code]

function rowOf({ code, httpStatus, isReadable }: VidgenAnswer): CodeRow {
  const known = knownRow(code)
  if (known !== undefined) return known
  // A proxy refuses a body that is too large before the upstream sees it; other pages of proxies say nothing certain.
  const isDefinite = isReadable || httpStatus === 413
  return (isDefinite ? VIDGEN_STATUSES[httpStatus] : undefined) ?? FAILED
}

function wordsOf({ message }: VidgenAnswer, { secrets }: VidgenRequest): string {
  let words = message
  for (const secret of secrets) words = words.replaceAll(secret, '[key]')
  return scrubMessage(words)
}

const codeOf = ({ word }: { readonly word?: string }): { readonly code?: string } =>
  word === undefined ? {} : { code: word }
