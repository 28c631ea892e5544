import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { textAs, textMatching } from './scalar-schemas.js'
import type { Schema } from './schema-schema.js'

export const identifier = textMatching(
  /^[A-Za-z0-9._-]{1,64}$/,
  'must be 1 to 64 letters, digits, dots, underscores or hyphens',
)

/**
 * Of a key, in the file and in the store. Logs, usage and limits call a caller nobody knows `-`, and all with a bearer of
 * their own `caller`: a key of that name would be counted with them, or not at all.
 */
export const keyIdentifier = textMatching(
  /^(?!(?:-|caller)$)[A-Za-z0-9._-]{1,64}$/,
  'must be 1 to 64 letters, digits, dots, underscores or hyphens, and neither - nor caller, which mean somebody else',
)

/** A model's whole name: catalogue rows and the model map know no globs. */
export const modelName = textMatching(
  /^[^\s*\p{Cc}]{1,256}$/u,
  'must be a model name of 1 to 256 characters without spaces and without *',
)

/** Other glob signs are refused: they would silently match nothing. */
export const glob = textMatching(
  /^[^\s?[\]{}\p{Cc}]{1,256}$/u,
  'must be a model name of 1 to 256 characters without spaces, in which only * stands for any text; ? [ ] { } are not known',
)

export const voiceName = textMatching(/^[^\p{Cc}]{1,256}$/u, 'must be a voice of 1 to 256 printable characters')

export const clusterName = textMatching(
  /^[\x21-\x7e]{1,64}$/,
  'must be 1 to 64 printable ASCII characters without spaces',
)

/** A path laid between the base address and the provider's own path; the trailing slash is dropped. */
export const pathPrefix = textAs(
  'must be a path that starts with / and holds no query, fragment, space or ..',
  (text) =>
    /^\/[A-Za-z0-9._~%/-]*$/.test(text) && !text.split('/').includes('..') ? text.replace(/\/+$/, '') : undefined,
)

export const hostName = textAs('must be an IP address or a host name', (text) =>
  isIP(text) > 0 || /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})$/.test(text) ? text : undefined,
)

/** One address or a range of them; an IPv4 address in the dress of IPv6 would fit no peer, as peers are stripped of it. */
export const addressRange = textAs('must be an IP address or a range such as 10.0.0.0/8', (text) => {
  const [, network = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const bits = { 4: 32, 6: 128 }[isIP(network)]
  if (bits === undefined || /^::ffff:/i.test(network) || network.includes('%')) return undefined
  return prefix === undefined || Number(prefix) <= bits ? text : undefined
})

/** SHA-256 of an access key in lower-case hex; `sha256:<hex>` gives the hash itself. Undefined when it is neither. */
export function keyHash(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  if (text.startsWith('sha256:')) return /^sha256:([0-9a-f]{64})$/i.exec(text)?.[1]?.toLowerCase()
  return /^[\x21-\x7e]{1,512}$/.test(text) ? createHash('sha256').update(text).digest('hex') : undefined
}

export const accessKey = textAs(
  'must be 1 to 512 printable ASCII characters without spaces, or sha256: and 64 hex digits',
  keyHash,
)

/** An address without query, fragment and user; comes out in its canonical spelling without a trailing slash. */
export function address(schemes: readonly string[]): Schema<string> {
  const rule = `must be a ${schemes.join(', ')} address without user, query or fragment`
  return textAs(rule, (text) => {
    // The URL parser forgives spaces and backslashes, and drops an empty query or user without a trace.
    if (!/^[a-z]+:\/\/[^\s\\?#@/]+(?:\/[^\s\\?#]*)?$/i.test(text) || !URL.canParse(text)) return undefined
    const url = new URL(text)
    return schemes.includes(url.protocol.slice(0, -1)) ? `${url.origin}${url.pathname}`.replace(/\/+$/, '') : undefined
  })
}

/** A connection string; what follows the scheme is the driver's business. */
export function connectionUrl(schemes: readonly string[]): Schema<string> {
  const pattern = new RegExp(`^(?:${schemes.join('|')})://\\S+$`)
  return textMatching(
    pattern,
    `must be an address that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
  )
}

/** `host:port`, the host in the canonical spelling a URL would give it (so that the SSRF guard can compare text). */
export const hostAndPort = textAs('must be host:port with a port from 1 to 65535, [host]:port for IPv6', (text) => {
  const [, host, port] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535 || !URL.canParse(`http://${host}`))
    return undefined
  return `${new URL(`http://${host}`).hostname}:${Number(port)}`
})

/** Standard Webhooks: `whsec_` and the base64 of 24 to 64 bytes. */
export const webhookSecret = textAs('must be whsec_ followed by the base64 of 24 to 64 bytes', (text) => {
  const encoded = text.startsWith('whsec_') ? text.slice('whsec_'.length) : ''
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.toString('base64') === encoded && bytes.length >= 24 && bytes.length <= 64 ? text : undefined
})

/** An origin as browsers send it, or `*`; comes out in the spelling they use. `null` is what any sandboxed page sends. */
export const webOrigin = textAs('must be * or an origin such as https://app.example.com, without a path', (text) => {
  if (text === '*') return text
  if (!/^https?:\/\/[^\s/\\?#@*]+\/?$/i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).origin
})
