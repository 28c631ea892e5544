import type { Readable } from 'node:stream'
import type { LineSink } from '../observability/logger.js'
import { numberedLines } from './numbered-lines.js'

/**
 * Brings what workers write to one sink, by whole lines. Each writes to a pipe of its own: in one that several processes
 * write to, a full pipe takes parts of what they have, and lines longer than PIPE_BUF (4096 bytes) are torn at any time.
 */
export class WorkerLines {
  private readonly open = new Set<Promise<void>>()

  constructor(private readonly sink: LineSink) {}

  /** What a worker says from now on, until it ends. */
  follow(output: Readable, worker: number): void {
    const sink = numberedLines(worker, this.sink)
    let rest = ''
    output.setEncoding('utf8')
    output.on('data', (chunk: string) => {
      const text = rest + chunk
      let begin = 0
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', begin)) {
        sink.write(text.slice(begin, end + 1))
        begin = end + 1
      }
      rest = text.slice(begin)
    })
    const ended = new Promise<void>((resolve) => {
      output.once('close', () => {
        // Whoever was killed over a line has not ended it.
        if (rest !== '') sink.write(`${rest}\n`)
        this.open.delete(ended)
        resolve()
      })
    })
    this.open.add(ended)
  }

  /** Resolves when nobody can say anything any more. */
  async ended(): Promise<void> {
    await Promise.all(this.open)
  }
}
