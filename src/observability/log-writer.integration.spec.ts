import { createHook } from 'node:async_hooks'
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { setTimeout as passTime } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { BatchedOutputLab, MANY_LINES, type OutputKind, WRITE_MANY } from '../../test/support/batched-output-lab.js'
import { BatchedOutput } from './log-writer.js'
import { createLogging, describeError } from './logger.js'
import { promised } from '../../test/support/eventually.js'

describe('Output in batches', () => {
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

  /** Says at last how long all who hear of the end have taken: the test that waits for the process may hear of it late. */
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
  /** What a try to write is made of: a call of the thread pool, or a time to wait for. */
  const OF_A_TRY = new Set(['FSREQCALLBACK', 'Timeout', 'Immediate'])

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
          expect(performance.now() - leftAtMs).toBeLessThan(promised(5000))
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
        expect(tookMs(said)).toBeLessThan(promised(500))
        expect((await read()) === `${MANY_LINES.join('')}late\n`).toBe(true)
      })
    })
  })

  describe('While its reader stands still, batched output', () => {
    it.each(ALL_KINDS)('holds up nothing else in the process: %s', async (kind) => {
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
})

describe('describeError', () => {
  it('names type, code and scrubbed text, and each cause without its stack', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' })
    const described = describeError(new TypeError('https://api.canary.com broke', { cause }))
    expect(described).toEqual({
      type: 'TypeError',
      message: '[address] broke',
      cause: {
        type: 'Error',
        message: 'connect ECONNREFUSED [host]',
        code: 'ECONNREFUSED',
        stack: expect.stringContaining('Error: connect ECONNREFUSED [host]'),
      },
    })
  })

  it('describes what is not an error by its scrubbed text', () => {
    expect(describeError('Bearer canary')).toEqual({ message: 'Bearer [key]' })
    expect(describeError(undefined)).toEqual({ message: 'undefined' })
  })
})

describe('A log line', () => {
  it('is JSON with the time in words, scrubs errors, and is left out below the level', () => {
    const sink = new PassThrough()
    const { logger } = createLogging('info', sink)
    logger.error({ err: new Error('sk-canary12345') }, 'hello')
    logger.debug('canary')
    const text = String(sink.read())
    expect(text).not.toContain('canary')
    expect(JSON.parse(text)).toMatchObject({
      level: 50,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      err: { type: 'Error', message: '[key]' },
      msg: 'hello',
    })
  })
})
