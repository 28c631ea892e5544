import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

const MEBIBYTE = 1_048_576
/** Of the whole; the rest is for what lies outside of the JavaScript heap: bytes of the document, inflated streams. */
const HEAP_SHARE = 0.6
/** Chat must win where there are fewer cores than work: with 5, a third of the time is left for documents then. */
const NICENESS = 5
/** Linux: of all processes, the kernel ends these first when memory runs out. */
const OUT_OF_MEMORY_SCORE = '1000'
/** Where Linux distributions put it. Without it the engine's own watch ends whoever uses too much, up to 100 ms later. */
const PRLIMIT = ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path))

export interface EngineCommand {
  /** Absolute path of the script. */
  readonly entry: string
  readonly memoryBytes: number
}

/**
 * Starts an engine: standard error and a duplex pipe (descriptor 3) lead here, nothing else of the gateway reaches it, its
 * environment least of all. Failure to start is told by the events of the process.
 */
export function startEngine(command: EngineCommand): ChildProcess {
  const [program, ...parameters] = commandLine(command)
  const child = spawn(program, parameters, {
    cwd: '/',
    // One thread each for inflating and for collecting garbage: every thread counts against the memory limit.
    env: { UV_THREADPOOL_SIZE: '1' },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    windowsHide: true,
  })
  if (child.pid !== undefined) yieldToOthers(child.pid)
  return child
}

function commandLine({ entry, memoryBytes }: EngineCommand): [string, ...string[]] {
  const node: [string, ...string[]] = [
    process.execPath,
    `--max-old-space-size=${Math.floor((memoryBytes * HEAP_SHARE) / MEBIBYTE)}`,
    '--v8-pool-size=1',
    '--no-addons',
    entry,
    String(process.pid),
    String(memoryBytes),
  ]
  // No core file either: it would hold a caller's document.
  return PRLIMIT === undefined ? node : [PRLIMIT, `--data=${memoryBytes}`, '--core=0', ...node]
}

function yieldToOthers(pid: number): void {
  try {
    setPriority(pid, NICENESS)
    writeFileSync(`/proc/${pid}/oom_score_adj`, OUT_OF_MEMORY_SCORE)
  } catch {
    // Neither is needed to read a document, and not every system has both.
  }
}
