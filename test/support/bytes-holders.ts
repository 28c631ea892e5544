import type { BytesHolder } from '../../src/core/arriving-body.js'
import { callerWithOwnBearer } from '../../src/core/caller.js'

/** A call of somebody with a key that the gateway knows. */
export const callOf = (keyId: string): BytesHolder => ({ caller: { keyId }, heldBytes: 0, isOver: false })

/** A call of somebody with a key that the gateway does not know: one id for all of them. */
export const strangerOf = (bearer: string): BytesHolder => ({
  caller: callerWithOwnBearer(bearer),
  heldBytes: 0,
  isOver: false,
})
