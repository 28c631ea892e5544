import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { setPriority } from 'node:os'
import type { Readable } from 'node:stream'
import {
  ENGINE_PIPE,
  type EngineBegunHead,
  type EngineJobHead,
  type Frame,
  FrameReader,
  frameStart,
} from '@multi-model-gateway/document-engine/protocol.js'
import type { GatewayError } from '../core/errors.js'
import { clientDisconnected } from '../core/request-context.js'
import { type Confinement, permissionFlags } from './parser-confinement.js'
import { limitParseTime, processorMs } from './parse-time-limit.js'
import { errorFromExit, parseTimedOut, type ParseOptions, type ParserExit, EngineEnded } from './parser.js'

const MEBIBYTE = 1_048_576
/** JavaScript heap; the rest is for buffers outside of it: bytes of the document, inflated streams. */
const HEAP_SHARE = 0.6
/** Chat takes precedence on busy cores: at 5, documents still get a third of the time. */
const NICENESS = 5
/** Linux: the OOM killer ends these processes first. */
const OUT_OF_MEMORY_SCORE = '1000'
/** Path of `prlimit` on Linux. Without it the engine's watchdog enforces the limit, up to 100 ms later. */
const PRLIMIT = ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path))

/**
 * V8 13 (Node 24) reserves 512 MiB for the code of each thread, of which there are two. The system's limit counts them although they
 * are hardly used; the engine's watchdog does not.
 */
const RESERVED_BYTES = Number.parseInt(process.versions.v8) >= 13 ? 1024 * MEBIBYTE : 0

/** What every process of the engine is started with. */
export interface ParserProgram {
  /** Absolute path of the script. */
  readonly entry: string
  readonly confinement: Confinement
}

interface ParserCommand extends ParserProgram {
  readonly memoryBytes: number
}

/**
 * Starts an engine, connected by standard error and a duplex pipe (descriptor 3) only; it does not inherit the gateway's
 * environment. A failure to start is reported by the events of the process.
 */
function startEngine(command: ParserCommand): ChildProcess {
  const [program = '', ...parameters] = commandLine(command)
  const child = spawn(program, parameters, {
    cwd: '/',
    // One thread each for inflating and for collecting garbage: every thread counts against the memory limit.
    env: { UV_THREADPOOL_SIZE: '1' },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    windowsHide: true,
  })
  if (child.pid !== undefined) lowerPriority(child.pid)
  return child
}

function commandLine({ entry, confinement, memoryBytes }: ParserCommand): string[] {
  // No core file either: it would hold a caller's document.
  const limits = PRLIMIT === undefined ? [] : [PRLIMIT, `--data=${memoryBytes + RESERVED_BYTES}`, '--core=0']
  return [
    ...confinement.wrapper,
    ...limits,
    process.execPath,
    `--max-old-space-size=${Math.floor((memoryBytes * HEAP_SHARE) / MEBIBYTE)}`,
    '--v8-pool-size=1',
    '--no-addons',
    ...permissionFlags(entry, confinement),
    entry,
    String(process.pid),
    String(memoryBytes),
  ]
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, NICENESS)
    writeFileSync(`/proc/${pid}/oom_score_adj`, OUT_OF_MEMORY_SCORE)
  } catch {
    // Neither is required, and not every system has both.
  }
}

/** Injection token of a `ParserProgram`. */
export const PARSER_PROGRAM = Symbol('engine program')

const resolved = createRequire(import.meta.url).resolve('@multi-model-gateway/document-engine/process.js')

/** The built script: tests resolve the package to its sources, but Node has to run JavaScript. */
export const PARSER_ENTRY_PATH = resolved.replace(/src([\\/])process\.ts$/, 'dist$1process.js')

const HEAD_BYTES = 256 * 1024
/** Tail of standard error: Node's last message is at the end. */
const STDERR_TAIL_CHARACTERS = 4096
/** Loading takes a third of a second on an idle machine. */
const START_LIMIT_MS = 60_000

export interface ParserJob {
  readonly head: EngineJobHead
  /** Size of the document. */
  readonly bytes: number
  readonly open: () => Readable
}

interface RunningJob {
  isParsing: boolean
  readonly contentBytes: number
  readonly result: (frame: Frame) => void
  readonly fail: (error: EngineEnded) => void
}

/** One engine process, for one document at a time. It is killed on any protocol violation. */
export class ParserProcess {
  /** Documents sent to it so far. */
  documents = 0
  private readonly process: ChildProcess
  private readonly pipe: Socket
  private readonly reader: FrameReader
  private job: RunningJob | undefined
  private isReady = false
  private isKilled = false
  /** Set at `exit`; standard error may still be read until `close`. */
  private hasExited = false
  private exit: ParserExit | undefined
  private stderrTail = ''
  private error: unknown
  private resolveReady: () => void = () => undefined
  private resolveExit: (exit: ParserExit) => void = () => undefined

  /** Resolves once the engine is loaded; never if the process exits before. */
  readonly ready = new Promise<void>((resolve) => {
    this.resolveReady = resolve
  })
  /** Resolves when the process has exited and its streams are closed. */
  readonly exited = new Promise<ParserExit>((resolve) => {
    this.resolveExit = resolve
  })

  /** Throws the system's error if the process cannot be spawned. */
  constructor(readonly command: ParserCommand) {
    this.process = startEngine(command)
    const pipe = this.process.stdio[ENGINE_PIPE]
    if (!(pipe instanceof Socket)) throw new Error('the engine has no pipe')
    this.pipe = pipe
    this.reader = new FrameReader(
      () => ({ headBytes: HEAD_BYTES, payloadBytes: this.job?.contentBytes ?? 0 }),
      (frame) => {
        this.receive(frame)
      },
    )
    this.listen()
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.process.pid
  }

  /** Exited, or about to. */
  get isLost(): boolean {
    return this.hasExited || this.isKilled || this.error !== undefined
  }

  /** Resolves with the reply; rejects with `EngineEnded` if the process exits before. Only when ready, and one at a time. */
  run({ head, bytes, open }: ParserJob): Promise<Frame> {
    this.documents += 1
    const source = open()
    let sent = 0
    source.on('data', (chunk: Buffer) => {
      sent += chunk.length
    })
    source.once('error', (error) => {
      this.killForFault(error)
    })
    const answered = new Promise<Frame>((resolve, reject) => {
      this.job = { isParsing: false, contentBytes: head.contentBytes, result: resolve, fail: reject }
      if (this.exit !== undefined) reject(new EngineEnded(this.exit))
    })
    this.pipe.write(frameStart(head, bytes))
    source.pipe(this.pipe, { end: false })
    return answered.finally(() => {
      source.unpipe(this.pipe)
      source.destroy()
      // The engine would read the next document's head as the rest of this one.
      if (sent !== bytes) this.kill()
    })
  }

  /** Kills the process at once, idle or not. */
  kill(): void {
    this.isKilled = true
    this.process.kill('SIGKILL')
  }

  private listen(): void {
    const startLimit = setTimeout(() => {
      this.killForFault(new Error('the engine was not ready in time'))
    }, START_LIMIT_MS)
    void Promise.race([this.ready, this.exited]).then(() => {
      clearTimeout(startLimit)
    })
    this.pipe.on('data', (chunk: Buffer) => {
      this.read(chunk)
    })
    // The process's `exit` event reports the end.
    this.pipe.on('error', () => undefined)
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.stderrTail = (this.stderrTail + chunk.toString()).slice(-STDERR_TAIL_CHARACTERS)
    })
    this.process.once('error', (error) => {
      this.error ??= error
      if (this.process.pid === undefined) this.finish(null, null)
    })
    // Bytes still buffered for the dead process would delay `close`.
    this.process.once('exit', () => {
      this.hasExited = true
      this.pipe.destroy()
    })
    this.process.once('close', (code, signal) => {
      this.finish(code, signal)
    })
  }

  private read(chunk: Buffer): void {
    try {
      this.reader.push(chunk)
    } catch (error) {
      this.killForFault(error)
    }
  }

  private receive(frame: Frame): void {
    const { job } = this
    if (job?.isParsing === false && isBegun(frame)) {
      job.isParsing = true
      return
    }
    this.job = undefined
    if (job !== undefined) job.result(frame)
    else if (this.isReady) this.killForFault(new Error('the engine spoke without being asked'))
    this.isReady = true
    this.resolveReady()
  }

  /** For faults of the engine or the pipe, not of the document. */
  private killForFault(error: unknown): void {
    this.error ??= error
    this.process.kill('SIGKILL')
  }

  private finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.exit !== undefined) return
    const isParsing = this.job?.isParsing ?? false
    this.exit = { code, signal, stderrTail: this.stderrTail, isKilled: this.isKilled, error: this.error, isParsing }
    this.job?.fail(new EngineEnded(this.exit))
    this.resolveExit(this.exit)
  }
}

const isBegun = ({ head }: Frame): boolean => (head as Partial<EngineBegunHead> | null)?.outcome === 'begun'

/** Grace time after a disconnect: most documents are done by then, and the process need not be killed. */
const DISCONNECT_GRACE_MS = 500

/**
 * Parses one document on one engine, which is killed at the deadline or when no request waits any more. The engine is idle or gone
 * when the promise settles. Rejects with a `GatewayError`, or with an `EngineEnded` that `isUnrelatedExit`: then another
 * engine may parse the document.
 */
export async function readOn(
  engine: ParserProcess,
  job: ParserJob,
  { disconnect, deadlineAtMs, parseMs }: ParseOptions & { readonly parseMs: number },
): Promise<Frame> {
  if (disconnect.aborted) throw clientDisconnected()
  const remainingMs = deadlineAtMs - performance.now()
  if (remainingMs <= 0) throw parseTimedOut()
  const interruptions: GatewayError[] = []
  const interrupt = (reason: GatewayError): void => {
    interruptions.push(reason)
    engine.kill()
  }
  const workedMs = (): number | undefined => (engine.pid === undefined ? undefined : processorMs(engine.pid))
  const endTimeLimit = limitParseTime(workedMs, { parseMs, remainingMs }, () => {
    interrupt(parseTimedOut())
  })
  let grace: NodeJS.Timeout | undefined
  const unsubscribe = disconnect.onAbort(() => {
    grace = setTimeout(() => {
      interrupt(clientDisconnected())
    }, DISCONNECT_GRACE_MS)
  })
  try {
    return await engine.run(job)
  } catch (error) {
    if (interruptions[0] !== undefined) throw interruptions[0]
    throw error instanceof EngineEnded && error.isUnrelatedExit ? error : errorFromExit(error)
  } finally {
    endTimeLimit()
    clearTimeout(grace)
    unsubscribe()
  }
}
