/** Names in lower case; those that came several times have a list. */
export type ResponseHeaders = Record<string, string | string[] | undefined>

/** Told what the parser reads. Pieces of a body are parts of the chunk that was given to the parser, which nobody else uses. */
interface ParserEvents {
  /** Also of informational responses (1xx), which another head follows. */
  onHead(status: number, headers: ResponseHeaders): void
  onBody(piece: Buffer): void
  /** The response is complete; whether its connection may carry another one. */
  onComplete(mayKeepAlive: boolean): void
}

/** What came is no HTTP/1.1 response. Its `code` tells it from failures of the transport. */
export class MalformedHttp extends Error {
  readonly code = 'HTTP_MALFORMED'
}

/** Of a head, of a line before a chunk, of all trailers. */
const MAXIMUM_HEAD_BYTES = 16_384
/** Pieces of a chunked body up to here are moved together in the memory they came in: less than what each costs its readers. */
const SMALL_BYTES = 4_096

const LINE_END = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')
const HEAD_START = Buffer.from('HTTP/1.')
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: .*)?$/
/** In a head, beside its line ends. One search finds it: what looks at each line costs a relayed call a fiftieth. */
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const FORBIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/
/** A line that goes on the one before (obs-fold) has no such name: it is refused, as RFC 9112, section 5.2, lets a gateway do. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const LENGTH = /^\d{1,15}$/
const CHUNK_LINE = /^0*([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?$/

type State = 'head' | 'length' | 'chunkLine' | 'chunk' | 'chunkEnd' | 'trailers' | 'untilClose' | 'complete'

/**
 * Reads the responses of one connection, one at a time, as strictly as RFC 9112 asks of who must not be led to take one response
 * for two: line ends are CR LF, a length is given once and in one way. Whatever comes beyond a response ends its connection.
 * `execute` throws `MalformedHttp`; the parser is of no use afterwards.
 */
export class HttpParser {
  private state: State = 'complete'
  /** The beginning of a head or a line. */
  private held: Buffer | undefined
  /** Bytes of the body or of the chunk that are still to come. */
  private left = 0
  private trailerBytes = 0
  private mayKeepAlive = false

  constructor(private readonly events: ParserEvents) {}

  /** A request is about to be sent: its response comes next. */
  begin(): void {
    this.state = 'head'
    this.held = undefined
  }

  /** Its small chunks are moved together where they are. */
  execute(chunk: Buffer): void {
    const bytes = this.held === undefined ? chunk : Buffer.concat([this.held, chunk])
    this.held = undefined
    let offset = 0
    while (offset < bytes.length) {
      if (this.state === 'complete') throw new MalformedHttp('more came than a response')
      const next = this.step(bytes, offset)
      if (next === -1) {
        this.held = bytes.subarray(offset)
        return
      }
      offset = next
    }
  }

  /** The connection has ended: true where that is the end of the response. */
  finish(): boolean {
    if (this.state !== 'untilClose') return false
    this.complete(false)
    return true
  }

  /** Where the next step begins, or -1 when more bytes are needed. */
  private step(bytes: Buffer, offset: number): number {
    if (this.state === 'head') return this.readHead(bytes, offset)
    if (this.state === 'length') return this.readLength(bytes, offset)
    if (this.state === 'untilClose') {
      this.events.onBody(offset === 0 ? bytes : bytes.subarray(offset))
      return bytes.length
    }
    if (this.state === 'trailers') return this.readTrailer(bytes, offset)
    return this.readChunks(bytes, offset)
  }

  private readHead(bytes: Buffer, offset: number): number {
    // Some servers send an empty line behind a body. It belongs to no response.
    if (bytes[offset] === CARRIAGE_RETURN) {
      if (offset + 1 === bytes.length) return needMore(bytes, offset)
      if (bytes[offset + 1] === LINE_FEED) return offset + LINE_END.length
    }
    const end = bytes.indexOf(HEAD_END, offset)
    if (end === -1) {
      const compared = Math.min(bytes.length - offset, HEAD_START.length)
      if (HEAD_START.compare(bytes, offset, offset + compared, 0, compared) !== 0)
        throw new MalformedHttp('no HTTP/1.1')
      return needMore(bytes, offset)
    }
    if (end - offset > MAXIMUM_HEAD_BYTES) throw new MalformedHttp('the head is too large')
    const head = bytes.toString('latin1', offset, end)
    if (FORBIDDEN.test(head)) throw new MalformedHttp('the head has a character that stands in none')
    const lineEnd = head.indexOf('\r\n')
    const line = STATUS_LINE.exec(lineEnd === -1 ? head : head.slice(0, lineEnd))
    if (line === null) throw new MalformedHttp('the status line is broken')
    const status = Number(line[2])
    const headers = lineEnd === -1 ? {} : readHeaders(head, lineEnd + 2)
    if (status === 101) throw new MalformedHttp('the protocol changes unasked')
    if (status >= 200) this.frame(status, headers, line[1] === '1')
    this.events.onHead(status, headers)
    if (this.state === 'length' && this.left === 0) this.complete(end + HEAD_END.length === bytes.length)
    return end + HEAD_END.length
  }

  /** How the body ends (RFC 9112, section 6.3). */
  private frame(status: number, headers: ResponseHeaders, isVersion11: boolean): void {
    const { connection = '', 'content-length': length, 'transfer-encoding': encoding } = headers
    const options = String(connection).toLowerCase()
    this.mayKeepAlive = isVersion11 && !/(?:^|[,\s])close(?:$|[,\s])/.test(options)
    this.left = 0
    if (status === 204 || status === 304) {
      this.state = 'length'
    } else if (encoding !== undefined) {
      if (length !== undefined) throw new MalformedHttp('the length is given in two ways')
      if (String(encoding).toLowerCase() !== 'chunked') throw new MalformedHttp('the transfer encoding is not known')
      this.state = 'chunkLine'
    } else if (length !== undefined) {
      if (typeof length !== 'string' || !LENGTH.test(length)) throw new MalformedHttp('the length is no number')
      this.left = Number(length)
      this.state = 'length'
    } else {
      this.state = 'untilClose'
    }
  }

  private readLength(bytes: Buffer, offset: number): number {
    const end = Math.min(bytes.length, offset + this.left)
    this.left -= end - offset
    this.events.onBody(offset === 0 && end === bytes.length ? bytes : bytes.subarray(offset, end))
    if (this.left === 0) this.complete(end === bytes.length)
    return end
  }

  /** All chunks that are there, passed on in as few pieces as cost least. */
  private readChunks(bytes: Buffer, from: number): number {
    let offset = from
    let start = 0
    let end = 0
    const passOn = (): void => {
      if (end > start) this.events.onBody(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end))
    }
    while (offset < bytes.length && this.state !== 'trailers') {
      if (this.state !== 'chunk') {
        const next = this.state === 'chunkEnd' ? this.readChunkEnd(bytes, offset) : this.readChunkLine(bytes, offset)
        if (next === -1) break
        offset = next
        continue
      }
      const chunkEnd = Math.min(bytes.length, offset + this.left)
      const size = chunkEnd - offset
      if (end > start && size <= SMALL_BYTES) {
        bytes.copyWithin(end, offset, chunkEnd)
        end += size
      } else {
        passOn()
        start = offset
        end = chunkEnd
      }
      this.left -= size
      offset = chunkEnd
      if (this.left === 0) this.state = 'chunkEnd'
    }
    passOn()
    return offset === from ? -1 : offset
  }

  private readChunkEnd(bytes: Buffer, offset: number): number {
    if (bytes[offset] !== CARRIAGE_RETURN) throw new MalformedHttp('a chunk is longer than it said')
    if (offset + 1 === bytes.length) return -1
    if (bytes[offset + 1] !== LINE_FEED) throw new MalformedHttp('a chunk is longer than it said')
    this.state = 'chunkLine'
    return offset + 2
  }

  private readChunkLine(bytes: Buffer, offset: number): number {
    const end = bytes.indexOf(LINE_END, offset)
    if (end === -1) return needMore(bytes, offset)
    const size = CHUNK_LINE.exec(bytes.toString('latin1', offset, end))?.[1]
    if (size === undefined || end - offset > MAXIMUM_HEAD_BYTES)
      throw new MalformedHttp('the size of a chunk is broken')
    this.left = Number.parseInt(size, 16)
    this.state = this.left === 0 ? 'trailers' : 'chunk'
    this.trailerBytes = 0
    return end + 2
  }

  /** Trailers are checked and left out: no reader here has a use for them. */
  private readTrailer(bytes: Buffer, offset: number): number {
    const end = bytes.indexOf(LINE_END, offset)
    if (end === -1) return needMore(bytes, offset)
    this.trailerBytes += end + 2 - offset
    if (this.trailerBytes > MAXIMUM_HEAD_BYTES) throw new MalformedHttp('the trailers are too large')
    if (end === offset) {
      this.complete(end + 2 === bytes.length)
      return end + 2
    }
    const line = bytes.toString('latin1', offset, end)
    if (FORBIDDEN.test(line)) throw new MalformedHttp('a trailer has a character that stands in none')
    readHeaders(line, 0)
    return end + 2
  }

  /** A connection on which more came than the response carries no other one. */
  private complete(isAll: boolean): void {
    this.state = 'complete'
    this.events.onComplete(isAll && this.mayKeepAlive)
  }
}

/** Throws where what is needed would be too long. */
function needMore(bytes: Buffer, offset: number): -1 {
  if (bytes.length - offset > MAXIMUM_HEAD_BYTES) throw new MalformedHttp('a head or a line is too long')
  return -1
}

/** `head` has no character that stands in no header: see `FORBIDDEN`. */
function readHeaders(head: string, from: number): ResponseHeaders {
  const headers: ResponseHeaders = {}
  for (let start = from; start < head.length;) {
    const found = head.indexOf('\r\n', start)
    const end = found === -1 ? head.length : found
    const colon = head.indexOf(':', start)
    if (colon === -1 || colon >= end) throw new MalformedHttp('a header is broken')
    addHeader(headers, headerName(head.slice(start, colon)), trimmed(head, colon + 1, end))
    start = end + 2
  }
  return headers
}

/** Upstreams may send any names; only so many are remembered. */
const KNOWN_NAMES = 512
const lowerCaseNames = new Map<string, string>()

/** In lower case. */
function headerName(name: string): string {
  const known = lowerCaseNames.get(name)
  if (known !== undefined) return known
  if (!TOKEN.test(name)) throw new MalformedHttp('the name of a header is broken')
  // A part of a text holds all of it: a head with what is another caller's.
  const copy = Buffer.from(name, 'latin1').toString('latin1')
  const lowerCase = copy.toLowerCase()
  if (lowerCaseNames.size < KNOWN_NAMES) lowerCaseNames.set(copy, lowerCase)
  return lowerCase
}

const SPACE = 0x20
const TAB = 0x09

/** The part of the head between these places, without the blanks around it. */
function trimmed(head: string, from: number, to: number): string {
  const isBlank = (index: number): boolean => head.charCodeAt(index) === SPACE || head.charCodeAt(index) === TAB
  let start = from
  let end = to
  while (start < end && isBlank(start)) start++
  while (end > start && isBlank(end - 1)) end--
  return head.slice(start, end)
}

function addHeader(headers: ResponseHeaders, name: string, value: string): void {
  const known = Object.hasOwn(headers, name) ? headers[name] : undefined
  if (known === undefined) headers[name] = value
  else if (typeof known === 'string') headers[name] = [known, value]
  else known.push(value)
}
