import type { ServerResponse } from 'node:http'
import type { CallerHeaders } from './caller-resolver.js'
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net'

/** As much as Node reads at once. */
const READ_BYTES = 65_536

/** For the reads of all connections: each is over before the next begins. */
const MEMORY = Buffer.allocUnsafeSlow(READ_BYTES)

type Take = (length: number, memory: Buffer) => boolean

interface ReadHandle {
  readonly useUserBuffer: (memory: Buffer) => void
}

interface Slots {
  readonly memory: symbol
  readonly take: symbol
}

/**
 * Has a connection read into memory that is used again and again, instead of the 64 KiB that Node sets aside for every
 * single read and cuts down afterwards: under overload that is a tenth of all work. `take` gets the bytes, which hold
 * until it returns; false stops reading until the connection is asked for more. Can be called again, and only the
 * last `take` counts.
 *
 * Node offers this (`onread`) for connections that a program opens, and not for those it accepts, though they are the
 * same within. Where this version of Node does not have what it takes, nothing changes: the connection reads as before.
 */
export function readIntoSharedMemory(socket: Socket, take: (bytes: Buffer) => boolean): void {
  const slotted = socket as unknown as Record<symbol, Buffer | Take | null | undefined>
  const handle = (socket as Socket & { readonly _handle?: Partial<ReadHandle> | null })._handle
  if (SLOTS === undefined || typeof handle?.useUserBuffer !== 'function') return
  slotted[SLOTS.take] = (length: number, memory: Buffer) => take(memory.subarray(0, length))
  if (slotted[SLOTS.memory] === MEMORY) return
  slotted[SLOTS.memory] = MEMORY
  handle.useUserBuffer(MEMORY)
}

/** Where a socket keeps what `onread` was given. */
function findSlots(): Slots | undefined {
  const options: SocketConstructorOpts & { readonly onread: OnReadOpts } = {
    onread: { buffer: MEMORY, callback: () => true },
  }
  const socket = new Socket(options)
  const symbols = Object.getOwnPropertySymbols(socket)
  const memory = symbols.find(({ description }) => description === 'kBuffer')
  const take = symbols.find(({ description }) => description === 'kBufferCb')
  return memory === undefined || take === undefined ? undefined : { memory, take }
}

const SLOTS = findSlots()

/** What a refusal has to know of a request. */
export interface SimpleRequest extends CallerHeaders {
  readonly method: string
  /** Without query. */
  readonly path: string
  /** The caller's own `x-request-id`, of characters that need no escaping anywhere; '' when it sent none. */
  readonly requestId: string
}

const HEAD_END = Buffer.from('\r\n\r\n')

/** Longer heads are the server's own parser's to judge. */
const MAXIMUM_HEAD_BYTES = 8_192

/** Request line and headers as RFC 9112 has them, without its leniencies; method and path are the groups. */
const HEAD =
  /^(GET|POST|DELETE) (\/[!->@-~]*)(?:\?[!-~]*)? HTTP\/1\.1(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*)*$/

/**
 * Headers that say otherwise where a message ends, that ask for more than an answer (a page's, too: it must be able to read it), or
 * that stand there twice.
 */
const ODD =
  /\n(?:transfer-encoding:|origin:|upgrade:|expect:|te:|trailer:|proxy-connection:|http2-settings:|connection:(?!\s*keep-alive\s*(?:\r|$))|(content-length|x-request-id|authorization|x-api-key|x-forwarded-for):[^]*\n\1:)/i

const LENGTH = /\ncontent-length:[\t ]*([^\r]*)/i
const DIGITS = /^\d{1,9}[\t ]*$/
const REQUEST_ID = /\nx-request-id:[\t ]*([^\r]*)/i
const AUTHORIZATION = /\nauthorization:[\t ]*([^\r]*)/i
const API_KEY = /\nx-api-key:[\t ]*([^\r]*)/i
const ANTHROPIC_VERSION = /\nanthropic-version:/i
const FORWARDED_FOR = /\nx-forwarded-for:[\t ]*([^\r]*)/i
const PLAIN_ID = /^(?:[\w.:-]{1,128}[\t ]*)?$/

/**
 * Reads bytes that are exactly one whole, ordinary HTTP/1.1 request; undefined for everything else, however slightly it
 * departs from that: only what every parser in front would take for one request may be answered without the server's own.
 */
export function readSimpleRequest(bytes: Buffer, peer?: string): SimpleRequest | undefined {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd === -1 || headEnd > MAXIMUM_HEAD_BYTES) return undefined
  const head = bytes.toString('latin1', 0, headEnd)
  const [, method = '', path] = HEAD.exec(head) ?? []
  if (path === undefined || ODD.test(head)) return undefined
  const length = LENGTH.exec(head)?.[1] ?? '0'
  const isWhole = DIGITS.test(length) && bytes.length === headEnd + HEAD_END.length + Number(length)
  const requestId = REQUEST_ID.exec(head)?.[1] ?? ''
  if (!isWhole || !PLAIN_ID.test(requestId)) return undefined
  const valueOf = (header: RegExp): string | undefined => header.exec(head)?.[1]?.trimEnd()
  const apiKey = valueOf(API_KEY)
  return {
    method,
    path,
    requestId: requestId.trimEnd(),
    authorization: valueOf(AUTHORIZATION),
    apiKey,
    isOfMessages: apiKey !== undefined || ANTHROPIC_VERSION.test(head),
    forwardedFor: valueOf(FORWARDED_FOR),
    peer,
  }
}

/** The request gate as `FastReject` uses it. */
export interface FastRejectGate {
  /** While it is false no request is refused, and a fast reject would be in the way. */
  readonly isRefusing: boolean
  /** The whole answer of a refused request as it goes over the wire; undefined when it is let in. */
  refusalText(request: SimpleRequest): string | undefined
  /** Hands bytes to the server's parser; the request they are is let in. */
  letIn(parse: () => void): void
  /** The answer to the last request that the parser read from a connection; undefined once it is over. */
  lastResponse(socket: Socket): ServerResponse | undefined
}

const FAST_REJECTED = Symbol('fast rejected')

type FastRejectSocket = Socket & { [FAST_REJECTED]?: boolean }

/**
 * Stands between a kept-alive connection and the server's parser while requests are refused, and answers those that are
 * refused by itself. A refusal through the parser, with a request and a response made for it, costs twice as much; what
 * refusals cost is missing to those that are let in.
 *
 * Only bytes that are one whole ordinary request are looked at, between two requests of the connection. Whatever else
 * comes goes to the parser, and the fast reject is over.
 */
export class FastReject {
  private isUp = true
  private idleTimeoutMs = 0
  private idleTimer: NodeJS.Timeout | undefined
  private wasUsed = false

  private constructor(
    private readonly socket: FastRejectSocket,
    private readonly parse: (chunk: Buffer) => void,
    private readonly gate: FastRejectGate,
  ) {}

  /** Stands before a connection that is between two requests and has no fast reject yet; any other is left as it is. */
  static raise(socket: FastRejectSocket, gate: FastRejectGate): void {
    const [parse, ...others] = socket.listeners('data') as ((chunk: Buffer) => void)[]
    if (parse === undefined || others.length > 0 || socket[FAST_REJECTED] === true) return
    if (socket.destroyed || gate.lastResponse(socket) !== undefined) return
    const reject = new FastReject(socket, parse, gate)
    socket[FAST_REJECTED] = true
    // Node's parser reads past JavaScript; it lets go of the connection when it has a listener (`unconsume`).
    socket.on('data', reject.read).removeListener('data', parse)
    socket.once('close', reject.resumeIdleTimeout)
    readIntoSharedMemory(socket, reject.take)
  }

  /** What was read into memory that is not ours to keep. */
  private readonly take = (bytes: Buffer): boolean => {
    if (!this.isUp) return this.socket.push(Buffer.from(bytes))
    this.read(bytes)
    return true
  }

  private readonly read = (bytes: Buffer): void => {
    const { gate, socket } = this
    const isBetween = socket.writableLength === 0 && gate.lastResponse(socket) === undefined
    const request = isBetween && gate.isRefusing ? readSimpleRequest(bytes, socket.remoteAddress) : undefined
    if (request === undefined) {
      this.#lower()
      this.parse(Buffer.from(bytes))
      return
    }
    const refusal = gate.refusalText(request)
    if (refusal !== undefined) {
      this.#suspendIdleTimeout()
      // At the end of the turn (`deferWrites`): clients that are answered at once and ask again at once would make a turn last for a
      // second, as libuv takes sockets that become ready while it takes others.
      socket.write(refusal, 'latin1')
      return
    }
    this.resumeIdleTimeout()
    gate.letIn(() => {
      this.parse(Buffer.from(bytes))
    })
  }

  #lower(): void {
    const { socket } = this
    this.isUp = false
    socket[FAST_REJECTED] = false
    this.resumeIdleTimeout()
    socket.on('data', this.parse).removeListener('data', this.read).removeListener('close', this.resumeIdleTimeout)
  }

  /**
   * Node puts a connection to the end of a list of thousands at every read and every write, which is a tenth of what a
   * refusal costs. It only notes that the connection was used; a silent one is closed a little later for it,
   * after less than twice the time.
   */
  #suspendIdleTimeout(): void {
    this.wasUsed = true
    const { timeout = 0 } = this.socket
    if (timeout === 0) return
    this.idleTimeoutMs = timeout
    this.socket.setTimeout(0)
    this.idleTimer = setInterval(this.watchUse, timeout).unref()
  }

  private readonly resumeIdleTimeout = (): void => {
    if (this.idleTimer === undefined) return
    clearInterval(this.idleTimer)
    this.idleTimer = undefined
    this.socket.setTimeout(this.idleTimeoutMs)
  }

  private readonly watchUse = (): void => {
    const { wasUsed } = this
    this.wasUsed = false
    if (wasUsed) return
    this.resumeIdleTimeout()
    this.socket.emit('timeout')
  }
}
