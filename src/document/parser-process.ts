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
import { errorFromExit, parseTimedOut, type ParseOptions, type ParserExit, EngineEnded } from './parser.js'

const MEBIBYTE = 1_048_576
/** Of the whole; the rest is for what lies outside of the JavaScript heap: bytes of the document, inflated streams. */
const HEAP_SHARE = 0.6
/** Chat must win where there are fewer cores than work: with 5, a third of the time is left for documents then. */
const NICENESS = 5
/** Linux: of all processes, the kernel ends these first when memory runs out. */
const OUT_OF_MEMORY_SCORE = '1000'
/** Path of `prlimit` on Linux. Without it the engine's watchdog enforces the limit, up to 100 ms later. */
const PRLIMIT = ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path))

interface ParserCommand {
  /** Absolute path of the script. */
  readonly entry: string
  readonly memoryBytes: number
}

/**
 * Starts an engine: standard error and a duplex pipe (descriptor 3) lead here, nothing else of the gateway reaches it, its
 * environment least of all. A failure to start is reported by the events of the process.
 */
function startEngine(command: ParserCommand): ChildProcess {
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

function commandLine({ entry, memoryBytes }: ParserCommand): [string, ...string[]] {
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

/** Injection token: absolute path of the script an engine runs. */
export const PARSER_ENTRY = Symbol('engine entry')

const resolved = createRequire(import.meta.url).resolve('@multi-model-gateway/document-engine/process.js')

/** Node runs what is built: tests find the package's sources, and start the engine that was built last. */
export const PARSER_ENTRY_PATH = resolved.replace(/src([\\/])process\.ts$/, 'dist$1process.js')

const HEAD_BYTES = 256 * 1024
/** Of standard error: what the runtime says when it dies stands at the end. */
const KEPT_ERROR_CHARACTERS = 4096
/** Loading takes a third of a second on a machine that has nothing else to do. */
const START_LIMIT_MS = 60_000

export interface ParserJob {
  readonly head: EngineJobHead
  /** Of the document. */
  readonly bytes: number
  readonly open: () => Readable
}

interface RunningJob {
  isParsing: boolean
  readonly contentBytes: number
  readonly result: (frame: Frame) => void
  readonly fail: (error: EngineEnded) => void
}

/** One engine in its process, for one document at a time. Whatever it does that it should not do ends it. */
export class ParserProcess {
  /** Documents it was given. */
  documents = 0
  private readonly process: ChildProcess
  private readonly pipe: Socket
  private readonly reader: FrameReader
  private job: RunningJob | undefined
  private isReady = false
  private isKilled = false
  /** Its standard error may still be read. */
  private hasExited = false
  private exit: ParserExit | undefined
  private errors = ''
  private error: unknown
  private onReady: () => void = () => undefined
  private onEnd: (exit: ParserExit) => void = () => undefined

  /** Resolves once everything is loaded; never, when the process ends before. */
  readonly ready = new Promise<void>((resolve) => {
    this.onReady = resolve
  })
  /** Resolves when nothing is left of the process. */
  readonly ended = new Promise<ParserExit>((resolve) => {
    this.onEnd = resolve
  })

  /** Throws what the system says when it cannot even try. */
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

  /** Gone, or about to be. */
  get isLost(): boolean {
    return this.hasExited || this.isKilled || this.error !== undefined
  }

  /** Resolves with its answer; rejects with `EngineEnded` when it ends before. Only when ready, and one at a time. */
  run({ head, bytes, open }: ParserJob): Promise<Frame> {
    this.documents += 1
    const source = open()
    let sent = 0
    source.on('data', (chunk: Buffer) => {
      sent += chunk.length
    })
    source.once('error', (error) => {
      this.breakOff(error)
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
      // It would take the next document's head for the rest of this one.
      if (sent !== bytes) this.kill()
    })
  }

  /** Ends it at once; also the way to get rid of one that has nothing to do. */
  kill(): void {
    this.isKilled = true
    this.process.kill('SIGKILL')
  }

  private listen(): void {
    const startLimit = setTimeout(() => {
      this.breakOff(new Error('the engine was not ready in time'))
    }, START_LIMIT_MS)
    void Promise.race([this.ready, this.ended]).then(() => {
      clearTimeout(startLimit)
    })
    this.pipe.on('data', (chunk: Buffer) => {
      this.read(chunk)
    })
    // The process's `exit` event reports the end.
    this.pipe.on('error', () => undefined)
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.errors = (this.errors + chunk.toString()).slice(-KEPT_ERROR_CHARACTERS)
    })
    this.process.once('error', (error) => {
      this.error ??= error
      if (this.process.pid === undefined) this.finish(null, null)
    })
    // Bytes that the system still holds for a dead reader would keep the process from being over.
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
      this.breakOff(error)
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
    else if (this.isReady) this.breakOff(new Error('the engine spoke without being asked'))
    this.isReady = true
    this.onReady()
  }

  /** The engine, or the way to it, is at fault and not the document. */
  private breakOff(error: unknown): void {
    this.error ??= error
    this.process.kill('SIGKILL')
  }

  private finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.exit !== undefined) return
    const isParsing = this.job?.isParsing ?? false
    this.exit = { code, signal, stderrTail: this.errors, isKilled: this.isKilled, error: this.error, isParsing }
    this.job?.fail(new EngineEnded(this.exit))
    this.onEnd(this.exit)
  }
}

const isBegun = ({ head }: Frame): boolean => (head as Partial<EngineBegunHead> | null)?.outcome === 'begun'

/** Most documents are done by then, and the process is spared. */
const LEAVE_GRACE_MS = 500

/**
 * Reads one document on one engine, which is ended at the deadline or when no request waits any more. The engine is idle or gone by
 * the time the promise settles. Rejects with a `GatewayError`, or with an `EngineEnded` that `isUnrelatedExit`: then another
 * engine may read the document.
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
  const interruptIn = (ms: number, reason: () => GatewayError): NodeJS.Timeout =>
    setTimeout(() => {
      interruptions.push(reason())
      engine.kill()
    }, ms)
  const timers = [interruptIn(Math.min(parseMs, remainingMs), parseTimedOut)]
  const unsubscribe = disconnect.onAbort(() => {
    timers.push(interruptIn(LEAVE_GRACE_MS, clientDisconnected))
  })
  try {
    return await engine.run(job)
  } catch (error) {
    if (interruptions[0] !== undefined) throw interruptions[0]
    throw error instanceof EngineEnded && error.isUnrelatedExit ? error : errorFromExit(error)
  } finally {
    timers.forEach(clearTimeout)
    unsubscribe()
  }
}
