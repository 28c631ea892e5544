import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

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
