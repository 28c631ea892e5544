import type { ByteSink, ByteSource } from '../core/byte-source.js'

/**
 * A body of several buffers, each handed on as it is and in a turn of its own: what is written in one turn is joined, and
 * the copy would live as long as the slowest reader.
 */
export class PiecewiseBody implements ByteSource {
  private readonly pieces: Buffer[]
  private sink: ByteSink | undefined
  private isPaused = false
  private isPlanned = false

  constructor(pieces: readonly Buffer[]) {
    this.pieces = [...pieces]
  }

  start(sink: ByteSink): void {
    this.sink = sink
    this.step()
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.plan()
  }

  cancel(): void {
    this.sink = undefined
    this.pieces.length = 0
  }

  private plan(): void {
    if (this.isPlanned || this.sink === undefined) return
    this.isPlanned = true
    setImmediate(() => {
      this.isPlanned = false
      if (!this.isPaused) this.step()
    })
  }

  private step(): void {
    const { sink } = this
    const piece = this.pieces.shift()
    if (piece !== undefined) {
      sink?.data(piece)
      this.plan()
      return
    }
    this.sink = undefined
    sink?.end()
  }
}
