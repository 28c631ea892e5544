import { hash } from 'node:crypto'
import type { Caller } from '../common/auth/caller.js'

/** Enough of a SHA-256 that two bearers never share an owner. */
const BEARER_DIGITS = 32

/** Who a caller's tasks belong to: the id of a known key, or a part of the digest of a bearer of the caller's own. */
export const ownerOf = ({ keyId, bearer }: Caller): string =>
  bearer === undefined ? keyId : `bearer:${hash('sha256', bearer, 'hex').slice(0, BEARER_DIGITS)}`
