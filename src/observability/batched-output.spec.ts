import { createHook } from 'node:async_hooks'
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as passTime } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { BatchedOutputLab, MANY_LINES } from '../../test/support/batched-output-lab.js'
import { BatchedOutput } from './log-writer.js'

/** What a try to write is made of: a call of the thread pool, or a time to wait for. */
const OF_A_TRY = new Set(['FSREQCALLBACK', 'Timeout', 'Immediate'])

let lab: BatchedOutputLab

beforeAll(() => {
  lab = new BatchedOutputLab()
})
afterAll(() => {
  lab.close()
})

describe('batched output', () => {
  it('brings lines whole and in order into a file, behind what is there', () => {
    const path = lab.file('log')
    const file = openSync(path, 'w')
    writeSync(file, 'before\n')
    const output = new BatchedOutput(file)
    for (const line of MANY_LINES) output.write(line)
    output.flushSync()
    closeSync(file)
    expect(readFileSync(path, 'utf8')).toBe(`before\n${MANY_LINES.join('')}`)
  })

  it('waits for a full pipe without spinning, and loses nothing', async () => {
    await lab.withPipe(async ({ writeEnd, read }) => {
      let calls = 0
      const hook = createHook({
        init: (_id, type) => {
          if (OF_A_TRY.has(type)) calls++
        },
      }).enable()
      const output = new BatchedOutput(writeEnd)
      for (const line of MANY_LINES) output.write(line)
      await passTime(600)
      hook.disable()
      // One try in 50 ms, a few for what the pipe took at first.
      expect(calls).toBeLessThan(20)
      expect(calls).toBeGreaterThan(2)
      output.write('end\n')
      expect(await read((text) => text.endsWith('end\n'))).toBe(`${MANY_LINES.join('')}end\n`)
    })
  })

  it('counts the lines that a standing reader made it drop, and says so', async () => {
    await lab.withPipe(async ({ writeEnd, read }) => {
      const output = new BatchedOutput(writeEnd)
      const line = `${'x'.repeat(99_999)}\n`
      for (let count = 0; count < 100; count++) output.write(line)
      const text = await read((so) => so.endsWith('log lines dropped"}\n'))
      const lines = text.trimEnd().split('\n')
      const said: unknown = JSON.parse(lines.pop() ?? '')
      expect(lines.length).toBeLessThan(100)
      expect(said).toMatchObject({ level: 40, dropped: 100 - lines.length })
      expect(new Set(lines)).toEqual(new Set([line.trimEnd()]))
    })
  })
})
