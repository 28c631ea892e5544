import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { BatchedOutputLab, MANY_LINES, type OutputKind, WRITE_MANY } from '../../../test/support/batched-output-lab.js'

const ALL_KINDS = [
  ['pipe that waits'],
  ['pipe that never waits'],
  ['socket that waits'],
  ['socket that never waits'],
] as const satisfies readonly (readonly [OutputKind])[]

/** Says so, and goes: not before the reader stands still in front of a full pipe. */
const LEAVE = `const leave = () => process.stderr.write('exits', () => process.exit())`

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
    const script = `import { createHook } from 'node:async_hooks'
      ${WRITE_MANY}
      ${LEAVE}
      let calls = 0
      const init = (_id, type) => {
        if (type === 'FSREQCALLBACK' && ++calls === 4) leave()
      }
      createHook({ init }).enable()
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
        ${LEAVE}
        setTimeout(leave, 400)`
      await lab.withProcess(kind, script, async ({ child, told }) => {
        await told()
        const leftAtMs = performance.now()
        const killer = setTimeout(() => child.kill('SIGKILL'), 15_000)
        const [code] = (await once(child, 'exit')) as [number | null]
        clearTimeout(killer)
        expect(code).toBe(0)
        const tookMs = performance.now() - leftAtMs
        expect(tookMs).toBeGreaterThan(900)
        expect(tookMs).toBeLessThan(5000)
      })
    },
  )
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
