import { type ByteSink, type ByteSource, ProviderResponse } from '../core/byte-stream.js'
import type { GatewayError } from '../core/errors.js'
import { hasLine } from '../core/sse.js'
import { isRecord } from '../core/validation-rules.js'

/** Of ids as upstreams make them; nothing in one changes the meaning of a path, and a store takes every character. */
const ID_CHARACTERS = '[\\w=:-]{1,512}'
const ID = new RegExp(`^${ID_CHARACTERS}$`)
const FIRST_ID = new RegExp(`^\\s*\\{\\s*"id"\\s*:\\s*"(${ID_CHARACTERS})"`)

/** Whether a response or an item can be asked for by this id. */
export const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value)

/** The ids of a response, and of the items of its output. */
export interface ResponseIds {
  readonly responseId: string
  readonly itemIds: readonly string[]
}

/** Of an answer that is too large to be held: its id stands first. */
export function firstId(chunk: Buffer): ResponseIds | undefined {
  const [, responseId] = FIRST_ID.exec(chunk.toString('latin1', 0, 1024)) ?? []
  return responseId === undefined ? undefined : { responseId, itemIds: [] }
}

/** A response that a translation has made, and no upstream keeps. */
export interface MadeResponse {
  readonly responseId: string
  /** JSON, without the items of its output. */
  readonly response: string
  /** JSON of each item of its output. */
  readonly output: readonly string[]
}

/** What is to be kept of an answer: of one that its upstream keeps the ids. */
export type AnswerToKeep = ResponseIds | MadeResponse

/** Called before the end of an answer reaches the caller, who may ask for the response from then on. Never rejects. */
export type KeepResponse = (answer: AnswerToKeep) => Promise<void>

/** An answer up to this size is held until its ids are known: one with pictures in it takes some megabytes. */
export const KEPT_RESPONSE_BYTES = 8 * 1024 * 1024

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Undefined for what is no response. */
export function idsOf({ id, output }: Readonly<Record<string, unknown>>): ResponseIds | undefined {
  if (typeof id !== 'string') return undefined
  return {
    responseId: id,
    itemIds: listOf(output)
      .map((item) => (isRecord(item) ? item['id'] : undefined))
      .filter(isId),
  }
}

/** Events with the whole response, the last of a stream. */
const LAST_EVENTS = ['completed', 'incomplete', 'failed'] as const
export const LAST_EVENT_MARKS = LAST_EVENTS.map((name) => `event: response.${name}`)
const LAST_LINES = LAST_EVENT_MARKS.map((mark) => Buffer.from(mark))

const LOWER_E = 0x65
/** Longer than the line of a last event, shorter than that of a delta. */
const LONGEST_LAST_LINE = 30

/** Whether a line is that of a last event. */
export function isLastLine(bytes: Buffer, start: number, end: number): boolean {
  if (bytes[start] !== LOWER_E || end - start > LONGEST_LAST_LINE) return false
  const line = bytes.subarray(start, end)
  return LAST_LINES.some((mark) => hasLine(line, mark))
}

/** Whether a frame is a last event, in whatever order its lines stand. */
export const isLastEvent = (frame: Buffer): boolean => LAST_LINES.some((mark) => hasLine(frame, mark))

/**
 * Holds back what follows from where something is found in an answer, until that is kept: a caller who has the end of a response can refer
 * to it. The source rests meanwhile, so that no more than what was on its way is held.
 */
export class HeldEnd<Found> implements ByteSource, ByteSink {
  private sink!: ByteSink
  private isFound = false
  private isPaused = false
  /** What waits for it to be kept; undefined = nothing has to. */
  private waiting: (() => void)[] | undefined

  constructor(
    private readonly source: ByteSource,
    private readonly foundIn: (chunk: Buffer) => Found | undefined,
    /** Never rejects. */
    private readonly keep: (found: Found) => Promise<void>,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.source.start(this)
  }

  pause(): void {
    this.isPaused = true
    this.source.pause()
  }

  resume(): void {
    this.isPaused = false
    if (this.waiting === undefined) this.source.resume()
  }

  /** What waits has no reader any more. */
  cancel(): void {
    this.waiting = undefined
    this.source.cancel()
  }

  data(chunk: Buffer): void {
    const found = this.isFound ? undefined : this.foundIn(chunk)
    if (found !== undefined) this.hold(found)
    this.pass(() => {
      this.sink.data(chunk)
    })
  }

  end(): void {
    this.pass(() => {
      this.sink.end()
    })
  }

  fail(error: GatewayError): void {
    this.pass(() => {
      this.sink.fail(error)
    })
  }

  private pass(step: () => void): void {
    if (this.waiting === undefined) step()
    else this.waiting.push(step)
  }

  private hold(found: Found): void {
    this.isFound = true
    this.waiting = []
    this.source.pause()
    void this.keep(found).then(() => {
      this.release()
    })
  }

  /** The sink may cancel while it is given one of them. */
  private release(): void {
    for (let step = this.waiting?.shift(); step !== undefined; step = this.waiting?.shift()) step()
    if (this.waiting === undefined) return
    this.waiting = undefined
    if (!this.isPaused) this.source.resume()
  }
}

/**
 * The answer of a translated model, kept when it is over, before the caller has its end. `made` gives what is to be kept, once there is
 * something: nothing of a response that failed, which no request can go on with.
 */
export async function keepingTranslated(
  answer: ProviderResponse,
  made: () => MadeResponse | undefined,
  keep: KeepResponse | undefined,
): Promise<ProviderResponse> {
  if (keep === undefined) return answer
  const { status, headers, body, usage, onFailure } = answer
  if (!Buffer.isBuffer(body))
    return new ProviderResponse(status, headers, new HeldEnd(body, made, keep), usage, onFailure)
  const found = made()
  if (found !== undefined) await keep(found)
  return answer
}
