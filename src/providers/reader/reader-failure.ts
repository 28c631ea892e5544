import { GatewayError } from '../../core/gateway-error.js'
import { scrubMessage } from '../../core/message-text.js'
import { accountRefusal } from '../../upstream/account-refusal.js'
import type { ReaderFault } from './reader-dialect.js'
import { isSuccessful, type ReaderAnswer } from './reader-wire.js'

const ANSWERED = { phase: 'answered' } as const

interface ReaderKey {
  readonly secret: string
  readonly callersKey: boolean
}

/** The failure that an answer without a document is. The reader's words are shown where the document is at fault. */
export function readerFailure(
  fault: ReaderFault,
  answer: ReaderAnswer,
  { secret, callersKey }: ReaderKey,
): GatewayError {
  const words = scrubMessage(secret === '' ? answer.words : answer.words.replaceAll(secret, '[key]'))
  const cause = `status ${answer.status}${words === '' ? '' : `: ${words}`}`
  const details = { cause, attempt: ANSWERED }
  switch (fault) {
    case 'caller':
      return new GatewayError('invalid_request', words || 'The reader refused the request.', details)
    case 'too_large':
      return new GatewayError('payload_too_large', words || 'The document is too large.', details)
    case 'unreadable':
      return new GatewayError('unprocessable', words || 'The document cannot be read.', details)
    case 'unreachable':
      return new GatewayError('upstream_failed', "The document's server could not be reached.", details)
    case 'timeout':
      return new GatewayError('upstream_timeout', 'The document could not be read in time.', details)
    case 'key':
    case 'access':
    case 'quota':
    case 'busy':
      return accountRefusal(fault, callersKey, { cause, retryAfterSeconds: answer.retryAfterSeconds })
    case 'failed':
    default:
      return isSuccessful(answer) ? unreadableAnswer(cause) : brokenDown('The reader failed.', cause)
  }
}

const unreadableAnswer = (cause: string): GatewayError =>
  brokenDown('The reader answered with something that cannot be read.', cause)

/** The document has more text than is taken: nothing that another reader would do better. */
export const answerTooLong = (): GatewayError =>
  new GatewayError('payload_too_large', 'The text of the document is too long.', {
    cause: 'the answer of the reader is too large',
    attempt: ANSWERED,
  })

const brokenDown = (message: string, cause: string): GatewayError =>
  new GatewayError('upstream_failed', message, { cause, attempt: { ...ANSWERED, channelFault: true } })
