import {
  type DocumentKind,
  EngineFault,
  type EngineFaultName,
  type EngineLimits,
  type EngineMetadata,
  type EngineOutput,
} from './model/document.js'

/** The pipe to the gateway. Standard output is not used: libraries write their warnings there. */
export const ENGINE_PIPE = 3

/** What is read of a document, as the members of its result: they are put into the answer as they are. */
export const contentText = ({ html, markdown }: { readonly html: string; readonly markdown: string }): Buffer =>
  Buffer.from(`"html":${JSON.stringify(html)},"markdown":${JSON.stringify(markdown)}`)

/** Head of a job; the document's bytes are the payload. */
export interface EngineJobHead {
  readonly contentType: string
  readonly name: string
  readonly baseUrl: string
  readonly limits: EngineLimits
  /** Longest content that the gateway takes back. */
  readonly contentBytes: number
}

/** What memory the whole process uses, in bytes, now that it is done. */
interface Usage {
  readonly rssBytes: number
}

/** Head of an answer to a job; the content is the payload. */
export type EngineReplyHead =
  | ({
      readonly outcome: 'read'
      readonly kind: DocumentKind
      readonly metadata: EngineMetadata
      readonly pages: number
    } & Usage)
  | ({ readonly outcome: 'fault'; readonly fault: EngineFaultName; readonly message: string } & Usage)
  /** A memory request was refused, yet the process lives. */
  | ({ readonly outcome: 'out_of_memory' } & Usage)
  /** A fault of ours; `reason` is for the log. */
  | ({ readonly outcome: 'failed'; readonly reason: string } & Usage)

/** Sent before the answer, when all of the document is there: whatever ends the process from now on may be its doing. */
export interface EngineBegunHead {
  readonly outcome: 'begun'
}

/** The first frame of a process: everything is loaded. */
export interface EngineReadyHead {
  readonly outcome: 'ready'
}

/** Without `rssBytes`, which is measured when the answer is sent. */
type Unmeasured<Head> = Head extends unknown ? Omit<Head, 'rssBytes'> : never

export interface EngineAnswer {
  readonly head: Unmeasured<EngineReplyHead>
  readonly payload: Buffer
}

/** Readers shorten by their own rules; this only keeps the head of an answer within what the gateway accepts. */
const LONGEST_TEXT = 4096

const REFUSED_ALLOCATION = /allocation failed|invalid (?:typed )?(?:array|string) (?:buffer )?length|out of memory/i
const TOO_DEEP = /maximum call stack/i

/** The document as it was read; its content as JSON text of two members, at most `contentBytes` long. */
export function readAnswer(output: EngineOutput, contentBytes: number): EngineAnswer {
  const payload = contentText(output)
  if (payload.length > contentBytes)
    return faultAnswer(new EngineFault('too_large', 'The text of the document is too long.'))
  const { kind, metadata, pages } = output
  return { head: { outcome: 'read', kind, metadata: shortened(metadata), pages }, payload }
}

/** What a thrown error says about the document, or about the engine. */
export function faultAnswer(error: unknown): EngineAnswer {
  return { head: faultHead(error), payload: Buffer.alloc(0) }
}

function faultHead(error: unknown): EngineAnswer['head'] {
  if (error instanceof EngineFault) {
    return { outcome: 'fault', fault: error.fault, message: error.message.slice(0, LONGEST_TEXT) }
  }
  if (error instanceof RangeError && TOO_DEEP.test(error.message)) {
    return { outcome: 'fault', fault: 'too_large', message: 'The document is nested too deeply.' }
  }
  if (error instanceof RangeError && REFUSED_ALLOCATION.test(error.message)) return { outcome: 'out_of_memory' }
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { outcome: 'failed', reason: reason.slice(0, LONGEST_TEXT) }
}

function shortened({ title, description, keywords, siteName, favicon }: EngineMetadata): EngineMetadata {
  const cut = (text: string): string => text.slice(0, LONGEST_TEXT)
  return {
    title: cut(title),
    description: cut(description),
    keywords: cut(keywords),
    siteName: cut(siteName),
    favicon: cut(favicon),
  }
}

/**
 * What travels between the gateway and an engine, in both directions over one pipe: eight bytes that say how long head
 * and payload are, the head as JSON, and the payload as it is.
 */
export interface Frame {
  readonly head: unknown
  readonly payload: Buffer
}

/** In bytes; a frame that declares more is a fault, found before anything of it is kept. */
interface FrameLimits {
  readonly headBytes: number
  readonly payloadBytes: number
}

/** What came is no frame, or too long a one; nothing after it can be understood. */
export class FrameFault extends Error {
  override readonly name = 'FrameFault'
}

const PREFIX_BYTES = 8
const PAYLOAD_LENGTH_AT = 4

/** Everything of a frame that stands before its payload. */
export function frameStart(head: object, payloadBytes: number): Buffer {
  const text = Buffer.from(JSON.stringify(head))
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32BE(text.length)
  prefix.writeUInt32BE(payloadBytes, PAYLOAD_LENGTH_AT)
  return Buffer.concat([prefix, text])
}

type Expected = 'prefix' | 'head' | 'payload'

/** Puts frames together from pieces of any size; the payload is copied once, into a buffer of its own length. */
export class FrameReader {
  private expected: Expected = 'prefix'
  private target = Buffer.alloc(PREFIX_BYTES)
  private filled = 0
  private payloadBytes = 0
  private head: unknown

  /** `limits` is asked once per frame. */
  constructor(
    private readonly limits: () => FrameLimits,
    private readonly onFrame: (frame: Frame) => void,
  ) {}

  /** Throws a `FrameFault`; the reader is of no use afterwards. */
  push(chunk: Buffer): void {
    let offset = 0
    while (offset < chunk.length) {
      const copied = chunk.copy(this.target, this.filled, offset)
      offset += copied
      this.filled += copied
      // A head or a payload may be empty: then its turn is over before a byte of it came.
      while (this.filled === this.target.length) this.advance()
    }
  }

  private advance(): void {
    const done = this.target
    if (this.expected === 'prefix') this.readPrefix(done)
    else if (this.expected === 'head') this.readHead(done)
    else this.readPayload(done)
  }

  private readPrefix(prefix: Buffer): void {
    const headBytes = prefix.readUInt32BE()
    this.payloadBytes = prefix.readUInt32BE(PAYLOAD_LENGTH_AT)
    const limits = this.limits()
    if (headBytes > limits.headBytes || this.payloadBytes > limits.payloadBytes) {
      throw new FrameFault(`a frame declares ${headBytes} and ${this.payloadBytes} bytes`)
    }
    this.expect('head', headBytes)
  }

  private readHead(text: Buffer): void {
    try {
      this.head = JSON.parse(text.toString())
    } catch (cause) {
      throw new FrameFault('the head of a frame is not JSON', { cause })
    }
    this.expect('payload', this.payloadBytes)
  }

  private readPayload(payload: Buffer): void {
    this.expect('prefix', PREFIX_BYTES)
    this.onFrame({ head: this.head, payload })
  }

  private expect(expected: Expected, bytes: number): void {
    this.expected = expected
    this.filled = 0
    // Not from the pool of small buffers: readers may hand the memory behind it on.
    this.target = Buffer.allocUnsafeSlow(bytes)
  }
}
