/** What a refusal has to know of a request. */
export interface SimpleRequest {
  /** Without query. */
  readonly path: string
  /** The caller's own `x-request-id`, of characters that need no escaping anywhere; '' when it sent none. */
  readonly requestId: string
}

const HEAD_END = Buffer.from('\r\n\r\n')

/** Longer heads are the server's own parser's to judge. */
const MAXIMUM_HEAD_BYTES = 8_192

/** Request line and headers as RFC 9112 has them, without its leniencies; the path is the first group. */
const HEAD =
  /^(?:GET|POST|DELETE) (\/[!->@-~]*)(?:\?[!-~]*)? HTTP\/1\.1(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*)*$/

/** Headers that say otherwise where a message ends, that ask for more than an answer, or that stand there twice. */
const ODD =
  /\n(?:transfer-encoding:|upgrade:|expect:|te:|trailer:|proxy-connection:|http2-settings:|connection:(?!\s*keep-alive\s*(?:\r|$))|(content-length|x-request-id):[^]*\n\1:)/i

const LENGTH = /\ncontent-length:[\t ]*([^\r]*)/i
const DIGITS = /^\d{1,9}[\t ]*$/
const REQUEST_ID = /\nx-request-id:[\t ]*([^\r]*)/i
const PLAIN_ID = /^(?:[\w.:-]{1,128}[\t ]*)?$/

/**
 * Reads bytes that are exactly one whole, ordinary HTTP/1.1 request; undefined for everything else, however slightly it
 * departs from that: only what every parser in front would take for one request may be answered without the server's own.
 */
export function readSimpleRequest(bytes: Buffer): SimpleRequest | undefined {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd === -1 || headEnd > MAXIMUM_HEAD_BYTES) return undefined
  const head = bytes.toString('latin1', 0, headEnd)
  const path = HEAD.exec(head)?.[1]
  if (path === undefined || ODD.test(head)) return undefined
  const length = LENGTH.exec(head)?.[1] ?? '0'
  const isWhole = DIGITS.test(length) && bytes.length === headEnd + HEAD_END.length + Number(length)
  const requestId = REQUEST_ID.exec(head)?.[1] ?? ''
  return isWhole && PLAIN_ID.test(requestId) ? { path, requestId: requestId.trimEnd() } : undefined
}
