import type { LineSink } from '../observability/logger.js'

/**
 * Lines of JSON objects, each with the number of its worker in front: one log holds those of all of them. What is no
 * object stays as it is.
 */
export const numberedLines = (worker: number, sink: LineSink): LineSink => ({
  write: (line) => {
    sink.write(line.startsWith('{"') ? `{"worker":${worker},${line.slice(1)}` : line)
  },
})
