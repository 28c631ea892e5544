import type { ByteSource } from './byte-source.js'
import type { GatewayError } from './gateway-error.js'

/** Is told once how an answer that was still on its way came to its end; without an error it was complete. */
export interface AnswerListener {
  over(error: GatewayError | undefined): void
}

/** What a provider hands back and the relay writes to the caller: complete bytes, or a body still on its way. */
export class UpstreamAnswer {
  /** Set by whoever wants to know the end of a body that is still on its way. */
  listener: AnswerListener | undefined

  constructor(
    readonly status: number,
    /** Already reduced to what may reach a caller; framing headers are the relay's. */
    readonly headers: Record<string, string>,
    readonly body: Buffer | ByteSource,
    /**
     * How a failure after the first byte shows: `frame` = one error frame in the caller's dialect and no terminator,
     * `cut` = the connection is destroyed, because bytes of a file cannot say that they are incomplete.
     */
    readonly onFailure: 'frame' | 'cut' = 'cut',
  ) {}
}
