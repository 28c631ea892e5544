import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { type Fault, type FaultDialect, faultOfText, isSpoiling, isStatusFault } from './faults.js'
import { numberWord } from './generated-text.js'
import type { RecordedRequest } from './recorded-request.js'
import { deliver, type Frame, type Frames } from './response-stream.js'
import type { ServedLedger, ServedUnits } from './served-usage.js'

export type HeaderMap = Readonly<Record<string, string | readonly string[]>>

const SLOW_PIECES = 10

/** What an exchange has in common with the others of its simulator. */
export interface ExchangeSettings {
  readonly paceMs: number
  readonly served: ServedLedger
}

/** One request and its answer, as a simulator's handler sees it. Every answer goes through here, so every fault applies. */
export class Exchange {
  brokenOff = false
  #fault: Fault | undefined
  #heldAfter: number | undefined

  constructor(
    readonly request: RecordedRequest,
    readonly message: IncomingMessage,
    readonly response: ServerResponse,
    queuedFault: Fault | undefined,
    private readonly settings: ExchangeSettings,
  ) {
    this.#fault = queuedFault
  }

  /** Notes what the answer has served; called once for each answer, when no more of it will be written. */
  serve(model: string, units: ServedUnits): void {
    this.settings.served.add(model, units)
  }

  /** The body, piece by piece as it arrives. Throws when the caller goes away in the middle. */
  async *chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of this.message as AsyncIterable<Buffer>) {
      this.request.capture(chunk)
      yield chunk
    }
    this.request.markReceived()
  }

  /** The whole body, or undefined when it is larger than `limitBytes`: then it is read to its end and thrown away. */
  async readBody(limitBytes: number): Promise<Buffer | undefined> {
    const pieces: Buffer[] = []
    for await (const chunk of this.chunks()) {
      if (this.request.receivedBytes <= limitBytes) pieces.push(chunk)
      else pieces.length = 0
    }
    return this.request.receivedBytes <= limitBytes ? Buffer.concat(pieces) : undefined
  }

  /** Reads and records what is left of the body, so that the connection can be used again. */
  async drain(): Promise<void> {
    if (this.message.readableEnded || this.message.destroyed) return
    const rest = this.chunks()
    while ((await rest.next()).done !== true);
  }

  /**
   * Answers with the queued fault, or the one the caller's text asks for, when it replaces the answer. Returns true when
   * the exchange is thereby over. Spoiling faults are kept for `send` and `stream`; a delay is waited for here.
   */
  async answeredByFault(dialect: FaultDialect, text: string | undefined): Promise<boolean> {
    this.#fault ??= text === undefined ? undefined : faultOfText(text)
    this.#heldAfter = text === undefined ? undefined : numberWord(text, 'hold')
    const fault = this.#fault
    if (fault === undefined || isSpoiling(fault)) return false
    this.#fault = undefined
    if (typeof fault === 'object') {
      if (fault.kind === 'delay') {
        await pause(fault.ms)
        return false
      }
      await this.send(fault.status, fault.headers ?? {}, fault.body)
      return true
    }
    if (isStatusFault(fault)) {
      const answer = dialect.statusAnswer(fault)
      await this.send(answer.status, answer.headers, answer.body)
    } else await this.#applyFault(fault)
    return true
  }

  async #applyFault(fault: 'html' | 'malformed' | 'empty' | 'hang' | 'reset'): Promise<void> {
    switch (fault) {
      case 'html':
        await this.send(
          200,
          { 'content-type': 'text/html; charset=utf-8' },
          '<!doctype html><title>Be right back</title>',
        )
        break
      case 'malformed':
        await this.send(200, { 'content-type': 'application/json' }, '{"id":"broken","choices":[{"ind')
        break
      case 'empty':
        await this.send(200, { 'content-type': 'application/json' }, '')
        break
      case 'hang':
        await once(this.response, 'close')
        break
      case 'reset':
        this.breakOff()
    }
  }

  /** Answers with a body of known length (Content-Length is set). */
  async send(status: number, headers: HeaderMap, body: string | Buffer): Promise<void> {
    const bytes = Buffer.from(body)
    this.#head(status, {
      ...headers,
      ...(this.#fault === 'cleancut' ? {} : { 'content-length': String(bytes.length) }),
    })
    if (!isSpoiling(this.#fault)) this.response.end(bytes)
    else await this.#deliver(pieces(bytes, SLOW_PIECES), [])
  }

  /**
   * Answers with a body of unknown length (chunked), frame by frame under back-pressure; `onWritten` is called with each
   * written piece. Resolves when no more will be.
   */
  async stream(
    status: number,
    headers: HeaderMap,
    frames: Frames,
    dialect?: FaultDialect,
    onWritten?: (frame: Frame) => void,
  ): Promise<void> {
    this.#head(status, headers)
    this.response.flushHeaders()
    const heldAfter = this.#heldAfter
    const sent = heldAfter === undefined ? frames : held(frames, heldAfter, this.response)
    await this.#deliver(sent, dialect?.errorFrames() ?? [], onWritten)
  }

  /** True when the answer about to be sent as plain JSON must become a failure instead; that failure is then sent whole. */
  takeErrorFrame(): boolean {
    const wanted = this.#fault === 'errorframe'
    if (wanted) this.#fault = undefined
    return wanted
  }

  #head(status: number, headers: HeaderMap): void {
    this.request.answeredStatus = status
    this.response.writeHead(status, headers as Record<string, string | string[]>)
  }

  async #deliver(
    frames: Frames,
    errorFrames: readonly string[],
    onWritten: (frame: Frame) => void = () => undefined,
  ): Promise<void> {
    await deliver(this.response, frames, this.#fault, {
      errorFrames,
      onWritten,
      paceMs: this.settings.paceMs,
      breakOff: () => {
        this.breakOff()
      },
    })
  }

  /** Destroys the socket; with nothing written yet the caller sees a reset. */
  breakOff(): void {
    this.brokenOff = true
    const socket = this.message.socket
    if (this.response.headersSent) socket.destroy()
    else socket.resetAndDestroy()
  }
}

/** The first `count` frames, then silence until the client disconnects. */
async function* held(frames: Frames, count: number, response: ServerResponse): AsyncGenerator<Frame> {
  let sent = 0
  for await (const frame of frames) {
    if (sent === count && !response.destroyed) await once(response, 'close')
    yield frame
    sent += 1
  }
}

function* pieces(bytes: Buffer, count: number): Generator<Buffer> {
  const size = Math.max(1, Math.ceil(bytes.length / count))
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}
