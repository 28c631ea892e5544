import type { ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import {
  ENGINE_PIPE,
  type EngineBegunHead,
  type EngineJobHead,
} from '@multi-model-gateway/document-engine/engine-protocol.js'
import { type Frame, FrameReader, frameStart } from '@multi-model-gateway/document-engine/protocol.js'
import { type EngineCommand, startEngine } from './engine-command.js'
import { EngineEnded, type EngineExit } from './engine-exit.js'

const HEAD_BYTES = 256 * 1024
/** Of standard error: what the runtime says when it dies stands at the end. */
const KEPT_ERROR_CHARACTERS = 4096
/** Loading takes a third of a second on a machine that has nothing else to do. */
const START_LIMIT_MS = 60_000

export interface EngineJob {
  readonly head: EngineJobHead
  /** Of the document. */
  readonly bytes: number
  readonly open: () => Readable
}

interface RunningJob {
  hasBegun: boolean
  readonly contentBytes: number
  readonly answer: (frame: Frame) => void
  readonly fail: (error: EngineEnded) => void
}

/** One engine in its process, for one document at a time. Whatever it does that it should not do ends it. */
export class EngineChild {
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
  private exit: EngineExit | undefined
  private errors = ''
  private fault: unknown
  private onReady: () => void = () => undefined
  private onEnd: (exit: EngineExit) => void = () => undefined

  /** Resolves once everything is loaded; never, when the process ends before. */
  readonly ready = new Promise<void>((resolve) => {
    this.onReady = resolve
  })
  /** Resolves when nothing is left of the process. */
  readonly ended = new Promise<EngineExit>((resolve) => {
    this.onEnd = resolve
  })

  /** Throws what the system says when it cannot even try. */
  constructor(readonly command: EngineCommand) {
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
    return this.hasExited || this.isKilled || this.fault !== undefined
  }

  /** Resolves with its answer; rejects with `EngineEnded` when it ends before. Only when ready, and one at a time. */
  run({ head, bytes, open }: EngineJob): Promise<Frame> {
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
      this.job = { hasBegun: false, contentBytes: head.contentBytes, answer: resolve, fail: reject }
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
    // Its end is told by the process.
    this.pipe.on('error', () => undefined)
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.errors = (this.errors + chunk.toString()).slice(-KEPT_ERROR_CHARACTERS)
    })
    this.process.once('error', (error) => {
      this.fault ??= error
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
    if (job?.hasBegun === false && isBegun(frame)) {
      job.hasBegun = true
      return
    }
    this.job = undefined
    if (job !== undefined) job.answer(frame)
    else if (this.isReady) this.breakOff(new Error('the engine spoke without being asked'))
    this.isReady = true
    this.onReady()
  }

  /** The engine, or the way to it, is at fault and not the document. */
  private breakOff(error: unknown): void {
    this.fault ??= error
    this.process.kill('SIGKILL')
  }

  private finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.exit !== undefined) return
    const hasBegun = this.job?.hasBegun ?? false
    this.exit = { code, signal, errors: this.errors, isKilled: this.isKilled, fault: this.fault, hasBegun }
    this.job?.fail(new EngineEnded(this.exit))
    this.onEnd(this.exit)
  }
}

const isBegun = ({ head }: Frame): boolean => (head as Partial<EngineBegunHead> | null)?.outcome === 'begun'
