import { GatewayError } from '../../../core/errors.js'

/** Upstreams write `messages.3.content`, `messages[3].content` and even `messages.[3].content`. */
const STEPS = /[^.[\]]+/g

/** Which of the caller's fields became which of the upstream's: errors name the caller's. */
export class PathMap {
  private readonly callers = new Map<string, string>()

  /** `upstream` with dots alone. */
  set(upstream: string, caller: string): void {
    this.callers.set(upstream, caller)
  }

  /** The error with the caller's name of its field, or with none if no field of the caller became that one. */
  readonly translated = (error: GatewayError): GatewayError => {
    const { param, ...details } = error.details
    if (param === undefined) return error
    const path = this.callerPath(param)
    return new GatewayError(error.kind, error.message, path === undefined ? details : { ...details, param: path })
  }

  /** By the longest beginning of the path that is known. */
  private callerPath(param: string): string | undefined {
    const steps = param.match(STEPS) ?? []
    for (let length = steps.length; length > 0; length--) {
      const found = this.callers.get(steps.slice(0, length).join('.'))
      if (found !== undefined) return found
    }
    return undefined
  }
}
