import { type ChildProcess, execFileSync, spawn, type StdioOptions } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'

/** The built log writer: Node runs no sources. */
const LOG_WRITER = new URL('../../dist/observability/log-writer.js', import.meta.url)

/** More than any pipe takes at once. */
export const MANY_LINES = Array.from({ length: 3000 }, (_, index) => `${index} ${'x'.repeat(100)} é\n`)
export const WRITE_MANY = "for (let i = 0; i < 3000; i++) output.write(i + ' ' + 'x'.repeat(100) + ' é\\n')"

/** Of the process: `output` is on it. It is not standard output, with which Node does things of its own. */
const DESCRIPTOR = 3

/** A body with a reader that waits before it reads. */
type ReadKind = 'pipe that waits' | 'pipe that never waits' | 'socket that waits' | 'socket that never waits'

/** What `output` may be on. */
export type OutputKind = ReadKind | 'file'

/** A pipe without a reader before `read` is called. */
export interface TestPipe {
  readonly writeEnd: number
  /** Reads on until the text meets the condition, or all writers are gone. */
  readonly read: (isComplete?: (text: string) => boolean) => Promise<string>
}

/** A process that writes lines as a script says. */
export interface OutputProcess {
  readonly child: ChildProcess
  /** Resolves when it has said something on standard error. */
  readonly told: () => Promise<string>
  /** Resolves when it is over, with all it has said there. */
  readonly ended: () => Promise<{ readonly code: number | null; readonly said: string }>
  /** All it has written, once it is over. */
  readonly read: () => Promise<string>
}

/** A folder with the output as it runs outside of the tests. */
export class BatchedOutputLab {
  private readonly directory = mkdtempSync(join(tmpdir(), 'batched-output-'))
  private outputs = 0

  constructor() {
    writeFileSync(join(this.directory, 'package.json'), '{"type":"module"}')
  }

  close(): void {
    rmSync(this.directory, { recursive: true })
  }

  file(name: string): string {
    return join(this.directory, name)
  }

  /** A write into it waits for its reader where `waits` says so; else it answers EAGAIN when the pipe is full. */
  async withPipe(use: (pipe: TestPipe) => Promise<void>, waits = false): Promise<void> {
    const path = this.file(`pipe-${this.outputs++}`)
    execFileSync('mkfifo', [path])
    // A first reader must be there before a writer may open without waiting.
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writeEnd = openSync(path, waits ? constants.O_WRONLY : constants.O_WRONLY | constants.O_NONBLOCK)
    let reader: Socket | undefined
    let isOpen = true
    const closeWriteEnd = (): void => {
      if (isOpen) closeSync(writeEnd)
      isOpen = false
    }
    const read = (isComplete?: (text: string) => boolean): Promise<string> => {
      // Only then does the end of the child end the stream.
      if (isComplete === undefined) closeWriteEnd()
      // A socket begins to read when it is made.
      reader = new Socket({ fd: readEnd, readable: true })
      return textOf(reader, isComplete)
    }
    try {
      await use({ writeEnd, read })
    } finally {
      closeWriteEnd()
      if (reader === undefined) closeSync(readEnd)
      else reader.destroy()
    }
  }

  /** Runs a script that knows `output`, on a descriptor of that kind; ends it when `use` is over. */
  async withProcess(kind: OutputKind, script: string, use: (process: OutputProcess) => Promise<void>): Promise<void> {
    if (kind === 'file') {
      await this.withFile(script, use)
      return
    }
    const { waits, isSocket } = KINDS[kind]
    if (!isSocket) {
      await this.withPipe(({ writeEnd, read }) => using(this.run(script, writeEnd), () => read(), use), waits)
      return
    }
    // As what touches `process.stdout` makes of it.
    const change = waits
      ? ''
      : `import { Socket } from 'node:net'\nnew Socket({ fd: ${DESCRIPTOR}, readable: false })\n`
    const child = this.run(change + script, 'pipe')
    await using(child, () => textOf(child.stdio[DESCRIPTOR] as Readable), use)
  }

  private async withFile(script: string, use: (process: OutputProcess) => Promise<void>): Promise<void> {
    const path = this.file(`file-${this.outputs++}`)
    const file = openSync(path, 'a')
    try {
      await using(
        this.run(script, file),
        async ({ ended }) => {
          await ended()
          return readFileSync(path, 'utf8')
        },
        use,
      )
    } finally {
      closeSync(file)
    }
  }

  private run(script: string, output: number | 'pipe'): ChildProcess {
    const start = `import { BatchedOutput } from '${LOG_WRITER.href}'\nconst output = new BatchedOutput(${DESCRIPTOR})\n`
    const stdio: StdioOptions = ['ignore', 'ignore', 'pipe', output]
    return spawn(process.execPath, ['--input-type=module', '--eval', start + script], { cwd: this.directory, stdio })
  }
}

const KINDS: Readonly<Record<ReadKind, { readonly waits: boolean; readonly isSocket: boolean }>> = {
  'pipe that waits': { waits: true, isSocket: false },
  'pipe that never waits': { waits: false, isSocket: false },
  'socket that waits': { waits: true, isSocket: true },
  'socket that never waits': { waits: false, isSocket: true },
}

async function using(
  child: ChildProcess,
  read: (process: Pick<OutputProcess, 'ended'>) => Promise<string>,
  use: (process: OutputProcess) => Promise<void>,
): Promise<void> {
  let said = ''
  const told = new Promise<string>((resolve) => {
    child.stderr?.on('data', (text: Buffer) => {
      said += text.toString()
      resolve(said)
    })
  })
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
  const ended: OutputProcess['ended'] = async () => ({ code: await closed, said })
  try {
    await use({ child, told: () => told, ended, read: () => read({ ended }) })
  } finally {
    child.kill('SIGKILL')
  }
}

async function textOf(stream: Readable, isComplete?: (text: string) => boolean): Promise<string> {
  stream.setEncoding('utf8')
  let text = ''
  for await (const chunk of stream) {
    text += String(chunk)
    if (isComplete?.(text) === true) break
  }
  return text
}
