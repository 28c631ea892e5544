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

/** The content of a document as JSON members of the result; the gateway copies them unchanged. */
export const contentText = ({ html, markdown }: { readonly html: string; readonly markdown: string }): Buffer =>
  Buffer.from(`"html":${JSON.stringify(html)},"markdown":${JSON.stringify(markdown)}`)

/** Head of a job; the document's bytes are the payload. */
export interface EngineJobHead {
  readonly contentType: string
  readonly name: string
  readonly baseUrl: string
  readonly limits: EngineLimits
  /** Most bytes of content that the gateway accepts. */
  readonly contentBytes: number
}

/** Resident memory of the process in bytes, after the job. */
interface Usage {
  readonly rssBytes: number
}

/** Head of the result of a job; the content is the payload. */
export type EngineReplyHead =
  | ({
      readonly outcome: 'read'
      readonly kind: DocumentKind
      readonly metadata: EngineMetadata
      readonly pages: number
    } & Usage)
  | ({ readonly outcome: 'fault'; readonly fault: EngineFaultName; readonly message: string } & Usage)
  /** An allocation failed, but the process continues. */
  | ({ readonly outcome: 'out_of_memory' } & Usage)
  /** A bug of the engine; `reason` is for the log. */
  | ({ readonly outcome: 'failed'; readonly reason: string } & Usage)

/** Sent once the whole document has arrived: from then on the document may be the cause if the process ends. */
export interface EngineBegunHead {
  readonly outcome: 'begun'
}

/** First frame of a process: all modules are loaded. */
export interface EngineReadyHead {
  readonly outcome: 'ready'
}

/** Without `rssBytes`, which is measured when the answer is sent. */
type Unmeasured<Head> = Head extends unknown ? Omit<Head, 'rssBytes'> : never

export interface EngineAnswer {
  readonly head: Unmeasured<EngineReplyHead>
  readonly payload: Buffer
}

/** Bounds for metadata, so that the head of a result fits the gateway's limit; readers have shorter limits. */
const LONGEST_TEXT = 4096
const LONGEST_WARNING = 500
const MOST_WARNINGS = 16
const MOST_PAGES = 500

const REFUSED_ALLOCATION = /allocation failed|invalid (?:typed )?(?:array|string) (?:buffer )?length|out of memory/i
const TOO_DEEP = /maximum call stack/i

/** The frame of a result; the content is JSON text of two members, at most `contentBytes` long. */
export function readAnswer(output: EngineOutput, contentBytes: number): EngineAnswer {
  const payload = contentText(output)
  if (payload.length > contentBytes)
    return faultAnswer(new EngineFault('too_large', 'The text of the document is too long.'))
  const { kind, metadata, pages } = output
  return { head: { outcome: 'read', kind, metadata: shortened(metadata), pages }, payload }
}

/** Converts a thrown error to an outcome. */
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

function shortened(metadata: EngineMetadata): EngineMetadata {
  const { title, description, keywords, siteName, favicon, language, warnings } = metadata
  const cut = (text: string): string => text.slice(0, LONGEST_TEXT)
  return {
    title: cut(title),
    description: cut(description),
    keywords: cut(keywords),
    siteName: cut(siteName),
    favicon: cut(favicon),
    language: cut(language),
    warnings: warnings.slice(0, MOST_WARNINGS).map(({ code, message, pages }) => ({
      ...{ code, message: message.slice(0, LONGEST_WARNING) },
      ...(pages === undefined ? {} : { pages: pages.slice(0, MOST_PAGES) }),
    })),
  }
}

/**
 * A frame between the gateway and an engine, in both directions over one pipe: the lengths of head and payload (eight
 * bytes), the head as JSON, the payload as raw bytes.
 */
export interface Frame {
  readonly head: unknown
  readonly payload: Buffer
}

/** Limits in bytes; a frame that declares more is refused before any of it is buffered. */
interface FrameLimits {
  readonly headBytes: number
  readonly payloadBytes: number
}

/** The bytes are no frame, or a frame over the limit; the rest of the stream is unusable. */
export class FrameFault extends Error {
  override readonly name = 'FrameFault'
}

const PREFIX_BYTES = 8
const PAYLOAD_LENGTH_AT = 4

/** Length prefix and head of a frame. */
export function frameStart(head: object, payloadBytes: number): Buffer {
  const text = Buffer.from(JSON.stringify(head))
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32BE(text.length)
  prefix.writeUInt32BE(payloadBytes, PAYLOAD_LENGTH_AT)
  return Buffer.concat([prefix, text])
}

type Expected = 'prefix' | 'head' | 'payload'

/** Assembles frames from chunks of any size; the payload is copied once, into a buffer of its exact length. */
export class FrameReader {
  private expected: Expected = 'prefix'
  private target = Buffer.alloc(PREFIX_BYTES)
  private filled = 0
  private payloadBytes = 0
  private head: unknown

  /** `limits` is called once per frame. */
  constructor(
    private readonly limits: () => FrameLimits,
    private readonly onFrame: (frame: Frame) => void,
  ) {}

  /** Throws a `FrameFault`; the reader must not be used afterwards. */
  push(chunk: Buffer): void {
    let offset = 0
    while (offset < chunk.length) {
      const copied = chunk.copy(this.target, this.filled, offset)
      offset += copied
      this.filled += copied
      // An empty head or payload is complete before any byte arrives.
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
    // Not from Node's pool of small buffers: readers may transfer the underlying memory.
    this.target = Buffer.allocUnsafeSlow(bytes)
  }
}
