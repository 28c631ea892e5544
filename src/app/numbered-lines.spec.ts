import { describe, expect, it } from '@jest/globals'
import { createLogging } from '../observability/logger.js'
import { numberedLines } from './numbered-lines.js'

describe('the log of a worker', () => {
  it('has its number in every line', () => {
    const lines: string[] = []
    const { logger, sink } = createLogging('info', numberedLines(3, { write: (line) => lines.push(line) }))
    logger.info({ status: 1 }, 'from pino')
    sink.write('{"level":30,"msg":"past pino"}\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      expect.objectContaining({ worker: 3, status: 1, msg: 'from pino' }),
      { worker: 3, level: 30, msg: 'past pino' },
    ])
    expect(lines.every((line) => line.endsWith('}\n'))).toBe(true)
  })

  it('is left alone where it is no object', () => {
    const lines: string[] = []
    const sink = numberedLines(3, { write: (line) => lines.push(line) })
    for (const line of ['plain words\n', '\n', '{}\n']) sink.write(line)
    expect(lines).toEqual(['plain words\n', '\n', '{}\n'])
  })
})
