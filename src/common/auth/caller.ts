import type { AccessKey } from '../../config/gateway-config.js'

/**
 * Who calls. `keyId` is the only thing about a key that reaches logs, metrics or usage. `bearer` is kept solely for
 * channels with `credentials: caller` and is set only when the gateway does not know the key, so that a key of the
 * gateway's own can never be handed to an upstream.
 */
export interface Caller {
  readonly keyId: string
  readonly models?: readonly string[]
  readonly bearer?: string
}

export const callerOfKey = (key: AccessKey): Caller =>
  key.models === undefined ? { keyId: key.id } : { keyId: key.id, models: key.models }

/** A caller with an upstream key of its own; one id for all of them keeps labels bounded. */
export const callerWithOwnBearer = (bearer: string): Caller => ({ keyId: 'caller', bearer })
