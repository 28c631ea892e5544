import type { ModelFields } from '../core/json-body.js'

/** The fields of a messages request that the gateway reads; all others are relayed unread. */
export interface MessagesFields extends ModelFields {
  readonly messages: readonly unknown[]
  readonly max_tokens?: number | null
  readonly stream?: boolean | null
}
