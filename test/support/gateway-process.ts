import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Below every range from which systems take ports by themselves: such a port is still free after its process died. */
const PORTS = { lowest: 20_000, highest: 29_999 } as const

/** A port of 127.0.0.1 for a process that keeps it over restarts. Drawn anew in each run: two runs must not meet. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.lowest, PORTS.highest)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => {
        resolve(false)
      })
      server.listen(port, '127.0.0.1', () => {
        resolve(true)
      })
    })
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

interface Part {
  close(): Promise<unknown>
}

/** Has a part closed at last, and gives it back. */
export type ClosedAtLast = <Started extends Part>(part: Started) => Started

/**
 * Starts what consists of several parts. `close` closes those that `start` has named, the last one first, every one of them
 * though another cannot be closed, and rejects with what went wrong first. Where a step of `start` fails, they are closed at
 * once, before this rejects with what went wrong.
 */
export async function startParts<Whole extends object>(
  start: (closedAtLast: ClosedAtLast) => Promise<Whole>,
): Promise<Whole & { close(): Promise<void> }> {
  const parts: Part[] = []
  const close = async (): Promise<void> => {
    const closings: Promise<unknown>[] = []
    for (const part of parts.splice(0).reverse()) {
      const closing = part.close()
      closings.push(closing)
      await Promise.allSettled([closing])
    }
    await Promise.all(closings)
  }
  const closedAtLast: ClosedAtLast = (part) => {
    parts.push(part)
    return part
  }
  try {
    return { ...(await start(closedAtLast)), close }
  } catch (error) {
    // Not what cannot be closed: why it did not start is what is to be read.
    await close().catch(() => undefined)
    throw error
  }
}

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

/** How a process ended, and everything it said until then. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
  readonly errors: string
}

/** The built gateway as an operator runs it: a process of its own in a directory of its own. */
export interface GatewayProcess {
  readonly directory: string
  readonly child: ChildProcess
  readonly exited: Promise<Exit>
  /** Standard output so far: the banner and the log. */
  readonly output: () => string
  /** Resolves with the match once the output holds it; rejects when the process ends before. */
  said(pattern: RegExp): Promise<RegExpExecArray>
  /** The address it announced. */
  listening(): Promise<string>
  /** Ends it, whatever it does, and removes its directory. */
  close(): Promise<void>
}

/** A new, empty directory. */
export const emptyDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'gateway-process-'))

/**
 * Runs `node dist/main.js` with nothing in its environment but what is given here. The port is a free one unless named,
 * and metrics are off.
 * Throws when the gateway has not been built.
 */
export function runGateway(directory: string, variables: Readonly<Record<string, string>> = {}): GatewayProcess {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: run "npm run build" first ("npm test" does).`)
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, [MAIN], {
    cwd: directory,
    env: { PATH, HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', ...variables },
  })
  let output = ''
  let errors = ''
  let ended: Exit | undefined
  const listeners = new Set<() => void>()
  const tell = (): void => {
    for (const listener of [...listeners]) listener()
  }
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
    tell()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      ended = { code, signal, output, errors }
      resolve(ended)
      tell()
    })
  })
  const said = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(output)
        if (match === null && ended === undefined) return
        listeners.delete(look)
        if (match !== null) resolve(match)
        else
          reject(
            new Error(`the gateway ended (${String(ended?.code)}) without saying ${pattern}:\n${output}\n${errors}`),
          )
      }
      listeners.add(look)
      look()
    })
  return {
    directory,
    child,
    exited,
    output: () => output,
    said,
    listening: async () => (await said(/listens at (http:\/\/\S+)/))[1] ?? '',
    close: async () => {
      child.kill('SIGKILL')
      await exited
      await rm(directory, { recursive: true, force: true })
    },
  }
}
