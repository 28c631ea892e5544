import { isNativeError } from 'node:util/types'
import { GatewayError } from '../core/gateway-error.js'

/** What an error of the driver is about: the connection is gone, the server is busy, or it is the statement. */
export type StoreFailure = 'lost' | 'busy' | 'statement'

/** PostgreSQL: connection exceptions (08…), shutdown, crash, starting up. Node: what sockets and resolvers say. */
const LOST_CODES =
  /^(?:08\w{3}|57P0[1-5]|ECONN\w+|E(?:PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN|ADDRNOTAVAIL|AI_AGAIN)|ENOTFOUND)$/
/** Insufficient resources (53…: connections, memory, disk), statement timeout, lock timeout. */
const BUSY_CODES = /^(?:53\w{3}|57014|55P03)$/

/** The driver's own words; it gives these no code. */
const SILENCE_WORDS = 'Query read timeout'
const LOST_WORDS = ['Connection terminated', 'Client has encountered a connection error', 'Client was closed']
const POOL_ENDED_WORDS = 'Cannot use a pool'
const POOL_FULL_WORDS = 'timeout exceeded when trying to connect'

const MESSAGES = {
  lost: { text: 'The database cannot be reached at the moment.', retryAfterSeconds: 5 },
  busy: { text: 'The database has too much to do at the moment.', retryAfterSeconds: 1 },
} as const

/** Reads what the driver threw. */
export function storeFailure(error: unknown): StoreFailure {
  if (!isNativeError(error)) return 'statement'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const says = (words: string): boolean => error.message.startsWith(words)
  if (LOST_CODES.test(code) || isSilence(error) || LOST_WORDS.some(says) || says(POOL_ENDED_WORDS)) return 'lost'
  if (BUSY_CODES.test(code) || says(POOL_FULL_WORDS)) return 'busy'
  return 'statement'
}

/** True for a query that was given up on: its connection is still waiting for the answer. */
export const isSilence = (error: unknown): boolean => isNativeError(error) && error.message.startsWith(SILENCE_WORDS)

/** What a caller is told; the cause is for the log. */
export function storeOverloaded(failure: 'lost' | 'busy', cause: unknown): GatewayError {
  const { text, retryAfterSeconds } = MESSAGES[failure]
  return new GatewayError('overloaded', text, { cause, retryAfterSeconds })
}
