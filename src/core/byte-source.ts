import type { GatewayError } from './gateway-error.js'

/** Receives a body piece by piece. Exactly one of `end` and `fail` comes last, and nothing after it. */
export interface ByteSink {
  data(chunk: Buffer): void
  end(): void
  fail(error: GatewayError): void
}

/**
 * A body on its way. Nothing flows before `start`; `pause` and `resume` carry back-pressure to wherever the bytes come
 * from; `cancel` gives the rest up and frees the connection. Deliberately smaller than a Node stream: a relayed chunk
 * costs one function call.
 */
export interface ByteSource {
  /** The whole body, when all of it has arrived before anyone asked for it; `start` is then not needed. */
  readonly complete?: Buffer | undefined
  start(sink: ByteSink): void
  pause(): void
  resume(): void
  cancel(): void
}

/** A body that was collected in full, or the error that kept it from being so. Never more than `maximumBytes`. */
export function collect(source: ByteSource, maximumBytes: number, tooLarge: () => GatewayError): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let received = 0
    source.start({
      data: (chunk) => {
        received += chunk.length
        chunks.push(chunk)
        if (received <= maximumBytes) return
        // First the verdict: cancelling reports a failure of its own.
        reject(tooLarge())
        source.cancel()
      },
      end: () => {
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, received))
      },
      fail: reject,
    })
  })
}
