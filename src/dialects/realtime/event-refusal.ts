/** Why a client's event goes no further, in the members of an `error` event's `error`. */
export interface EventRefusal {
  readonly type: 'invalid_request_error'
  readonly code: string
  readonly message: string
  /** The field at fault, as the caller wrote its path. */
  readonly param: string | null
  /** The `event_id` of the refused event, when one could be read. */
  readonly eventId: string | null
}

export const refusal = (
  code: string,
  message: string,
  { param = null, eventId = null }: { readonly param?: string | null; readonly eventId?: string | null } = {},
): EventRefusal => ({ type: 'invalid_request_error', code, message, param, eventId })
