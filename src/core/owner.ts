import { hash } from 'node:crypto'
import type { Caller } from './caller.js'

/** Enough of a SHA-256 that two bearers never share an owner. */
const BEARER_DIGITS = 32

/** No key id has a colon. */
const BEARER_PREFIX = 'bearer:'

/**
 * Whom something belongs to that a caller made or paid for: the id of a known key, or a part of the digest of a bearer of
 * the caller's own, from which nothing of it can be read. Rows in the store carry it: it must stay as it is.
 */
export const ownerOf = ({ keyId, bearer }: Caller): string =>
  bearer === undefined ? keyId : `${BEARER_PREFIX}${hash('sha256', bearer, 'hex').slice(0, BEARER_DIGITS)}`

/** Whether an owner is a caller with a bearer of its own: anybody can be any number of them. */
export const isOwnBearer = (ownerId: string): boolean => ownerId.startsWith(BEARER_PREFIX)
