import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import type { Schema } from './checks.js'

const DECIMAL = /^\d{1,12}(?:\.\d{1,12})?$/

/**
 * A decimal ≥ 0 as text, digit for digit as it was written: no float ever stands for it. A number of YAML is taken by its
 * shortest spelling, which is what was written for every decimal of up to 15 digits.
 */
export const decimal: Schema<string> = {
  read(value, at) {
    const text = typeof value === 'number' ? plainSpelling(value) : value
    return typeof text === 'string' && DECIMAL.test(text)
      ? text
      : at.fault('must be a decimal ≥ 0 with at most 12 digits before and 12 after the point')
  },
}

/** JavaScript spells small numbers with an exponent. */
function plainSpelling(value: number): string {
  const text = String(value)
  const [, mantissa = '', exponent] = /^([\d.]+)e-(\d+)$/.exec(text) ?? []
  return exponent === undefined ? text : `0.${'0'.repeat(Number(exponent) - 1)}${mantissa.replace('.', '')}`
}

/** A string that `parse` accepts; `parse` returns undefined for one it refuses. `rule` says what would be right. */
export function textAs<T>(rule: string, parse: (text: string) => T | undefined): Schema<T> {
  return {
    read(value, at) {
      if (typeof value === 'number' || typeof value === 'boolean') return at.fault('must be a string; put it in quotes')
      if (typeof value !== 'string') return at.fault('must be a string')
      return parse(value) ?? at.fault(rule)
    },
  }
}

/** A string that matches the whole of `pattern`. */
export function textMatching(pattern: RegExp, rule: string): Schema<string> {
  return textAs(rule, (text) => (pattern.test(text) ? text : undefined))
}

/** One word of a closed list. */
export function oneOf<const T extends string>(words: readonly T[]): Schema<T> {
  return textAs(`must be one of ${words.join(', ')}`, (text) => words.find((word) => word === text))
}

/** True or false; also as text from the environment. */
export const boolean: Schema<boolean> = {
  read(value, at) {
    if (value === true || value === 'true') return true
    return value === false || value === 'false' ? false : at.fault('must be true or false')
  },
}

/** An integer; also one that came as decimal text from the environment. */
export function integer({ min, max }: { readonly min: number; readonly max?: number }): Schema<number> {
  const rule = max === undefined ? `must be an integer ≥ ${min}` : `must be an integer from ${min} to ${max}`
  return {
    read(value, at) {
      const number = toNumber(value)
      const fits = Number.isSafeInteger(number) && number >= min && number <= (max ?? Number.MAX_SAFE_INTEGER)
      return fits ? number : at.fault(rule)
    },
  }
}

/** A finite number greater than 0; also one that came as decimal text from the environment. */
export const positiveNumber: Schema<number> = {
  read(value, at) {
    const number = toNumber(value)
    return Number.isFinite(number) && number > 0 ? number : at.fault('must be a number > 0')
  },
}

/** A number within a range, both ends included; also one that came as decimal text from the environment. */
export function numberFrom({ min, max }: { readonly min: number; readonly max: number }): Schema<number> {
  return {
    read(value, at) {
      const number = toNumber(value)
      return number >= min && number <= max ? number : at.fault(`must be a number from ${min} to ${max}`)
    },
  }
}

const SIGNED_DECIMAL = /^-?\d{1,16}(?:\.\d{1,16})?$/

function toNumber(value: unknown): number {
  if (typeof value === 'string' && SIGNED_DECIMAL.test(value)) return Number(value)
  return typeof value === 'number' ? value : Number.NaN
}

/** Processes that serve one port; `auto` = one for each processor. */
export type WorkerCount = number | 'auto'

const processes = integer({ min: 1, max: 128 })

/** Numbers also as text, as they come from the environment. */
export const workers: Schema<WorkerCount> = {
  read(value, at) {
    if (value === 'auto') return value
    const isWord = typeof value === 'string' && !/^-?\d/.test(value)
    return isWord ? at.fault('must be an integer from 1 to 128, or auto') : processes.read(value, at)
  },
}

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
