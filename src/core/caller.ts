import type { AccessKey, KeyLimits } from '../config/access-config.js'
import type { KeyStanding } from './key-standing.js'

/**
 * Who calls. `keyId` is the only thing about a key that reaches logs, metrics or usage. `bearer` is kept solely for
 * channels with `credentials: caller` and is set only when the gateway does not know the key, so that a key of the
 * gateway's own can never be handed to an upstream.
 */
export interface Caller {
  readonly keyId: string
  readonly models?: readonly string[]
  /** Absent = none. */
  readonly limits?: KeyLimits
  readonly bearer?: string
  /** Of a key that can be revoked, or expire, while something runs with it. */
  readonly standing?: KeyStanding
}

export const callerOfKey = ({ id, models, limits }: AccessKey, standing?: KeyStanding): Caller => ({
  keyId: id,
  ...(models === undefined ? {} : { models }),
  ...(limits === undefined ? {} : { limits }),
  ...(standing === undefined ? {} : { standing }),
})

/** A caller with an upstream key of its own; one id for all of them keeps labels bounded. */
export const callerWithOwnBearer = (bearer: string): Caller => ({ keyId: 'caller', bearer })
