import { presentableMessage, scrubMessage } from '../core/message-text.js'

/** RFC 6455 section 5.5: a control frame carries 125 bytes, two of which are the code. */
const MAXIMUM_REASON_BYTES = 123

const UTF8_CONTINUATION = 0x80
const UTF8_KIND = 0xc0

/** An upstream's words without its hosts and account ids, and without the secret that the channel showed it. */
export function scrubUpstreamText(text: string, secret: string): string {
  return scrubMessage(secret === '' ? text : text.replaceAll(secret, '[key]'))
}

/** An upstream's close reason as the client may see it: scrubbed, and cut where a character ends. */
export function closeReason(reason: Buffer, secret: string): string {
  const bytes = Buffer.from(presentableMessage(scrubUpstreamText(reason.toString(), secret)))
  if (bytes.length <= MAXIMUM_REASON_BYTES) return bytes.toString()
  let end = MAXIMUM_REASON_BYTES
  while (((bytes[end] ?? 0) & UTF8_KIND) === UTF8_CONTINUATION) end--
  return bytes.toString('utf8', 0, end)
}
