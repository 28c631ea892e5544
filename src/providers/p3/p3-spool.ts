import type { Readable } from 'node:stream'
import type { ByteSink, ByteSource } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import { type ClientDisconnect, clientDisconnected } from '../../core/request-context.js'
import { SpooledFile } from '../../core/spooled-file.js'
import { malformedResponse } from '../../upstream/upstream-response.js'

/**
 * Reads a source to its end into memory and, beyond a mebibyte, a temporary file, with backpressure from the disk.
 * Rejects with `upstream_failed` when more than `maximumBytes` come.
 */
export async function spool(source: ByteSource, maximumBytes: number, file = new SpooledFile()): Promise<SpooledFile> {
  try {
    await fill(file, source, maximumBytes)
    return file
  } catch (error) {
    await file.remove()
    throw error
  }
}

function fill(file: SpooledFile, source: ByteSource, maximumBytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0
    let writing = 0
    const giveUp = (error: GatewayError): void => {
      // Rejects first: cancelling reports a failure of its own.
      reject(error)
      source.cancel()
    }
    const onDiskFailure = (cause: unknown): void => {
      giveUp(diskFailure(cause))
    }
    source.start({
      data: (chunk) => {
        received += chunk.length
        if (received > maximumBytes) {
          giveUp(malformedResponse('The upstream sent more audio than any text makes.'))
          return
        }
        if (++writing === 1) source.pause()
        file.append(chunk).then(() => {
          if (--writing === 0) source.resume()
        }, onDiskFailure)
      },
      end: () => {
        file.finish().then(resolve, onDiskFailure)
      },
      fail: reject,
    })
  })
}

/** A spooled file as a body. It is removed once read or cancelled, or when the client has disconnected. */
export class SpooledSource implements ByteSource {
  private sink: ByteSink | undefined
  private stream: Readable | undefined
  private over = false
  private readonly removeAbortListener: (() => void) | undefined

  constructor(
    private readonly file: SpooledFile,
    disconnect: ClientDisconnect,
  ) {
    // Called back at once if the client has already disconnected.
    this.removeAbortListener = disconnect.onAbort(() => {
      this.cancel()
    })
  }

  start(sink: ByteSink): void {
    if (this.over) {
      sink.fail(clientDisconnected())
      return
    }
    this.sink = sink
    this.stream = this.file.createReadStream()
    this.stream.on('data', (chunk: Buffer) => {
      if (!this.over) sink.data(chunk)
    })
    this.stream.on('end', () => {
      this.finish()
    })
    this.stream.on('error', (cause) => {
      this.finish(diskFailure(cause))
    })
  }

  pause(): void {
    this.stream?.pause()
  }

  resume(): void {
    this.stream?.resume()
  }

  cancel(): void {
    this.finish(clientDisconnected())
  }

  private finish(error?: GatewayError): void {
    if (this.over) return
    this.over = true
    this.stream?.destroy()
    this.file.remove().catch(() => undefined)
    this.removeAbortListener?.()
    if (error === undefined) this.sink?.end()
    else this.sink?.fail(error)
  }
}

const diskFailure = (cause: unknown): GatewayError =>
  new GatewayError('internal', 'The gateway could not keep the audio.', { cause })
