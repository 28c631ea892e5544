import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/gateway-process.js'

/** A server from the operating system's packages, as a child of the test. */
export interface Daemon {
  readonly child: ChildProcess
  /** Everything it said. */
  readonly output: () => string
  /** Ends it and resolves when it is gone. */
  end(signal?: NodeJS.Signals): Promise<void>
}

export interface DaemonOptions {
  readonly program: string
  readonly parameters: readonly string[]
  readonly variables?: Readonly<Record<string, string>>
  /** What it says once it serves; absent = it says nothing. */
  readonly ready?: RegExp
  /** The Debian package that has it. */
  readonly debianPackage: string
}

/** Resolves when it serves; rejects with all it said when it ends instead, or is not installed. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { program, parameters, variables = {}, ready, debianPackage } = options
  const { PATH = '' } = process.env
  const child = spawn(program, parameters, {
    env: { PATH: `${PATH}:/usr/sbin`, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const exited = new Promise<void>((resolve) => {
    child.once('close', () => {
      resolve()
    })
  })
  await new Promise<void>((resolve, reject) => {
    const hear = (text: Buffer): void => {
      output += text.toString()
      if (ready?.test(output) === true) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('spawn', () => {
      if (ready === undefined) resolve()
    })
    child.once('error', () => {
      reject(new Error(`${program} is missing: apt-get install ${debianPackage}`))
    })
    child.once('close', (code) => {
      reject(new Error(`${program} ended with code ${String(code)}:\n${output}`))
    })
  })
  return {
    child,
    output: () => output,
    end: async (signal = 'SIGKILL') => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await exited
    },
  }
}

/** Asks again and again, as a probe would, until `look` resolves with something; rejects with `complaint` after a while. */
export async function until<T>(
  look: () => Promise<T | undefined>,
  complaint: () => string,
  limitMs = 20_000,
): Promise<T> {
  const endsAtMs = performance.now() + limitMs
  for (;;) {
    const seen = await look()
    if (seen !== undefined) return seen
    if (performance.now() > endsAtMs) throw new Error(complaint())
    await once(AbortSignal.timeout(20), 'abort')
  }
}

/** The same for a condition. */
export async function comesTrue(condition: () => boolean | Promise<boolean>): Promise<void> {
  await until(
    async () => ((await condition()) ? true : undefined),
    () => `did not come true: ${String(condition)}`,
  )
}

/** A real Redis of its own, on a port that it keeps. */
export interface TestRedis {
  /** `redis://127.0.0.1:<port>` */
  readonly url: string
  /** Ends it as a power cut would; what it held is gone. */
  kill(): Promise<void>
  start(): Promise<void>
  /** It keeps its connections, and does not respond until it is resumed. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

export async function startRedis(): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-redis-'))
  const port = await freePort()
  const launch = (): Promise<Daemon> =>
    startDaemon({
      program: 'redis-server',
      parameters: [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
        '--dir',
        directory,
      ],
      ready: /Ready to accept connections/,
      debianPackage: 'redis-server',
    })
  let daemon = await launch()
  return {
    url: `redis://127.0.0.1:${port}`,
    kill: () => daemon.end(),
    start: async () => {
      daemon = await launch()
    },
    pause: () => {
      daemon.child.kill('SIGSTOP')
    },
    resume: () => {
      daemon.child.kill('SIGCONT')
    },
    close: async () => {
      await daemon.end()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The processes that this one started and that live, oldest first. */
export async function childrenOf(pid: number | undefined): Promise<readonly number[]> {
  const text = await readFile(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

/** Resolves when no process has that number any more. */
export async function gone(pid: number): Promise<void> {
  await until(
    () => Promise.resolve(isAlive(pid) ? undefined : true),
    () => `process ${pid} still lives`,
  )
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
