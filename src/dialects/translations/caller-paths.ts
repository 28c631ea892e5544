import { GatewayError } from '../../core/errors.js'

/** Upstreams write `messages.3.content`, `messages[3].content` and even `messages.[3].content`. */
const STEPS = /[^.[\]]+/g

/** The caller's name of what the upstream names by these steps; undefined for what is not the caller's. */
type PathOf = (steps: readonly string[]) => string | undefined

/** The error with the caller's name of its field, or with none if no field of the caller became that one. */
export function withCallersPath(error: GatewayError, callersPath: PathOf): GatewayError {
  const { kind, message } = error
  const { param, ...details } = error.details
  const named = param ?? (kind === 'invalid_request' ? fieldNamedIn(message) : undefined)
  if (named === undefined) return error
  const path = callersPath(named.match(STEPS) ?? [])
  return new GatewayError(kind, message, path === undefined ? details : { ...details, param: path })
}

/** For dialects whose errors have no member for the field: their messages begin with its name. */
export function withFieldInMessage(error: GatewayError): GatewayError {
  const { kind, message, details } = error
  const { param } = details
  if (param === undefined || fieldBefore(message) === param) return error
  return new GatewayError(kind, `${param}: ${message}`, details)
}

const QUOTES = /^[`"']/
/** A field has no white space, and ends before the sentence goes on. */
const FIRST_WORD = /^[^\s`"':]*/

const fieldBefore = (message: string): string | undefined => FIRST_WORD.exec(message.replace(QUOTES, ''))?.[0]

/** The field at the beginning of a message: `messages.3.content: …`, `` `temperature` may … ``. */
const NAMED_FIELD = /^(?:([`"'])([a-z_]+(?:[.[][\w\]]+)*)\1|([a-z_]+(?:[.[][\w\]]+)*)(?=:))/

/** Errors of messages upstreams have no member for it. */
function fieldNamedIn(message: string): string | undefined {
  const match = NAMED_FIELD.exec(message)
  return match?.[2] ?? match?.[3]
}

/** Which of the caller's fields became which of the upstream's. */
export class PathMap {
  private readonly callers = new Map<string, string>()

  /** `upstream` with dots alone. */
  set(upstream: string, caller: string): void {
    this.callers.set(upstream, caller)
  }

  /** By the longest beginning of the path that is known. */
  readonly callersPath: PathOf = (steps) => {
    for (let length = steps.length; length > 0; length--) {
      const found = this.callers.get(steps.slice(0, length).join('.'))
      if (found !== undefined) return found
    }
    return undefined
  }
}
