import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { BatchedOutput } from './batched-output.js'

/** What the processes of this spec run: the output, and what it imports. */
const SOURCES = ['observability/batched-output', 'observability/full-pipe', 'errors/system-error']
/** More than any pipe takes at once. */
const MANY_LINES = Array.from({ length: 3000 }, (_, index) => `${index} ${'x'.repeat(100)} é\n`)
const WRITE_MANY = "for (let i = 0; i < 3000; i++) output.write(i + ' ' + 'x'.repeat(100) + ' é\\n')"

let directory = ''
let pipes = 0

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'batched-output-'))
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext }
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  for (const name of SOURCES) {
    const source = fileURLToPath(new URL(`../${name}.ts`, import.meta.url))
    const { outputText } = ts.transpileModule(readFileSync(source, 'utf8'), { compilerOptions })
    mkdirSync(join(directory, dirname(name)), { recursive: true })
    writeFileSync(join(directory, `${name}.js`), outputText)
  }
})

afterAll(() => {
  rmSync(directory, { recursive: true })
})

/** A pipe that answers EAGAIN when it is full. Nobody reads before `read` is called. */
interface Pipe {
  readonly writeEnd: number
  /** Reads on until the text meets the condition, or all writers are gone. */
  readonly read: (isComplete?: (text: string) => boolean) => Promise<string>
}

async function withPipe(use: (pipe: Pipe) => Promise<void>): Promise<void> {
  const path = join(directory, `pipe-${pipes++}`)
  execFileSync('mkfifo', [path])
  // A first reader must be there before a writer may open without waiting.
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  let reader: Socket | undefined
  const writeEnd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  let isOpen = true
  const closeWriteEnd = (): void => {
    if (isOpen) closeSync(writeEnd)
    isOpen = false
  }
  const read = async (isComplete?: (text: string) => boolean): Promise<string> => {
    // Only then does the end of the child end the stream.
    if (isComplete === undefined) closeWriteEnd()
    // A socket begins to read when it is made.
    reader = new Socket({ fd: readEnd, readable: true }).setEncoding('utf8')
    let text = ''
    for await (const chunk of reader) {
      text += String(chunk)
      if (isComplete?.(text) === true) break
    }
    return text
  }
  try {
    await use({ writeEnd, read })
  } finally {
    closeWriteEnd()
    if (reader === undefined) closeSync(readEnd)
    else reader.destroy()
  }
}

/** A process with `output` on the pipe. It is not standard output because Node makes that one wait when it is full. */
function runScript(script: string, writeEnd: number): ChildProcess {
  const start = `import { BatchedOutput } from './observability/batched-output.js'\nconst output = new BatchedOutput(3)\n`
  const options = ['--input-type=module', '--eval', start + script]
  return spawn(process.execPath, options, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe', writeEnd] })
}

describe('batched output', () => {
  it('brings lines whole and in order into a file', () => {
    const path = join(directory, 'log')
    const file = openSync(path, 'w')
    const output = new BatchedOutput(file)
    for (const line of MANY_LINES) output.write(line)
    output.flushSync()
    closeSync(file)
    expect(readFileSync(path, 'utf8')).toBe(MANY_LINES.join(''))
  })

  it('waits for a full pipe without spinning, and loses nothing', async () => {
    await withPipe(async ({ writeEnd, read }) => {
      let calls = 0
      const hook = createHook({
        init: (_id, type) => {
          if (type === 'FSREQCALLBACK') calls++
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
    await withPipe(async ({ writeEnd, read }) => {
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

  it('writes the rest of a batch before what came later when the process exits', async () => {
    await withPipe(async ({ writeEnd, read }) => {
      const script = `${WRITE_MANY}
        setTimeout(() => {
          output.write('end\\n')
          process.stderr.write('exits', () => process.exit())
        }, 400)`
      const child = runScript(script, writeEnd)
      const ended = once(child, 'close')
      if (child.stderr !== null) await once(child.stderr, 'data')
      const text = await read()
      expect(text === `${MANY_LINES.join('')}end\n`).toBe(true)
      await ended
    })
  })

  it('lets the process exit although nobody reads', async () => {
    await withPipe(async ({ writeEnd }) => {
      const child = runScript(WRITE_MANY, writeEnd)
      const killer = setTimeout(() => child.kill('SIGKILL'), 15_000)
      const [code] = (await once(child, 'exit')) as [number | null]
      clearTimeout(killer)
      expect(code).toBe(0)
    })
  })
})
