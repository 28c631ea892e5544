import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { BatchedOutputLab, MANY_LINES, type OutputKind, WRITE_MANY } from '../../test/support/batched-output-lab.js'

const ALL_KINDS = [
  ['pipe that waits'],
  ['pipe that never waits'],
  ['socket that waits'],
  ['socket that never waits'],
  ['file'],
] as const satisfies readonly (readonly [OutputKind])[]

/** Says so and goes. The test reads only once it has heard that: until then the reader stands still. */
const LEAVE = `const leave = () => process.stderr.write('exits', () => process.exit())`

/** The same as soon as the thread pool is writing, where it does. */
const LEAVE_DURING_CALL = `import { createHook } from 'node:async_hooks'
  ${LEAVE}
  let calls = 0
  const init = (_id, type) => {
    if (type === 'FSREQCALLBACK' && ++calls === 1) leave()
  }
  createHook({ init }).enable()`

/** Says at last how long all who hear of the end have taken: whoever waits for the process may hear of it late. */
const TIMED = `let endedAtMs = 0
  process.prependListener('exit', () => (endedAtMs = performance.now()))
  process.on('exit', () => process.stderr.write(' after ' + (performance.now() - endedAtMs)))`

/** Nothing else keeps the process; without a write by the pool it ends like this. */
const END_UNWRITTEN = 'setTimeout(() => process.exit(1), 10_000)'

/** NaN when it has not said so. */
const tookMs = (said: string): number => Number(/ after ([\d.]+)$/.exec(said)?.[1])

let lab: BatchedOutputLab

beforeAll(() => {
  lab = new BatchedOutputLab()
})
afterAll(() => {
  lab.close()
})

describe('At the end of the process, batched output', () => {
  it.each(ALL_KINDS)('writes the rest of a batch before what came later: %s', async (kind) => {
    const script = `${WRITE_MANY}
      ${LEAVE}
      setTimeout(() => {
        output.write('end\\n')
        leave()
      }, 400)`
    await lab.withProcess(kind, script, async ({ told, read }) => {
      await told()
      const text = await read()
      expect(text === `${MANY_LINES.join('')}end\n`).toBe(true)
    })
  })

  it.each(ALL_KINDS)('knows what was written although a write is just being made: %s', async (kind) => {
    const script = `${WRITE_MANY}
      ${LEAVE_DURING_CALL}
      setTimeout(leave, 400)`
    await lab.withProcess(kind, script, async ({ told, read }) => {
      await told()
      const text = await read()
      expect(text === MANY_LINES.join('')).toBe(true)
    })
  })

  it.each(ALL_KINDS)('writes what is logged by those who hear of the end later: %s', async (kind) => {
    const script = `process.on('exit', () => output.write('late\\n'))
      process.prependListener('exit', () => output.write('early\\n'))
      output.write('first\\n')
      ${LEAVE}
      leave()`
    await lab.withProcess(kind, script, async ({ told, read }) => {
      await told()
      expect(await read()).toBe('first\nearly\nlate\n')
    })
  })

  it.each([['pipe that waits'], ['pipe that never waits'], ['socket that never waits']] as const)(
    'gives a reader who stands still one second in all, however much is logged then: %s',
    async (kind) => {
      const script = `process.on('exit', () => { for (let i = 0; i < 50; i++) output.write('late\\n') })
        ${WRITE_MANY}
        ${WRITE_MANY}
        ${TIMED}
        ${LEAVE}
        setTimeout(leave, 400)`
      await lab.withProcess(kind, script, async ({ child, told, ended }) => {
        await told()
        const leftAtMs = performance.now()
        const killer = setTimeout(() => child.kill('SIGKILL'), 15_000)
        const { code, said } = await ended()
        clearTimeout(killer)
        expect(code).toBe(0)
        expect(tookMs(said)).toBeGreaterThan(900)
        expect(performance.now() - leftAtMs).toBeLessThan(5000)
      })
    },
  )

  it('waits for a file no longer than its write takes, and writes what came later behind it', async () => {
    const script = `process.on('exit', () => output.write('late\\n'))
      ${WRITE_MANY}
      ${TIMED}
      ${LEAVE_DURING_CALL}
      ${END_UNWRITTEN}`
    await lab.withProcess('file', script, async ({ ended, read }) => {
      const { code, said } = await ended()
      expect(code).toBe(0)
      expect(tookMs(said)).toBeLessThan(500)
      expect((await read()) === `${MANY_LINES.join('')}late\n`).toBe(true)
    })
  })
})

describe('While its reader stands still, batched output', () => {
  it.each(ALL_KINDS)('holds up nobody: %s', async (kind) => {
    const script = `${WRITE_MANY}
      let turns = 0
      const turn = setInterval(() => {
        if (++turns < 40) return
        clearInterval(turn)
        ${LEAVE}
        leave()
      }, 10)`
    await lab.withProcess(kind, script, async ({ told, read }) => {
      expect(await told()).toBe('exits')
      expect((await read()) === MANY_LINES.join('')).toBe(true)
    })
  })
})
