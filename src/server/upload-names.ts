import { GatewayError } from '../core/gateway-error.js'

const FIELD_NAME_BYTES = 100
const FILE_NAME_CHARACTERS = 200
const EXTENSION_CHARACTERS = 16
/** Names that reach an object's prototype when a later reader builds objects from bracketed names. */
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
/** Fields that decide what is authorised and sent: no bracketed spelling may stand beside or instead of them. */
const PLAIN_NAMES: ReadonlySet<string> = new Set(['file', 'model'])

/** Why a text field with this name, after those already received, is refused; undefined when it is fine. */
export function faultOfFieldName(name: string, earlier: ReadonlySet<string>): GatewayError | undefined {
  if (name === 'file') return missingFileName(name)
  if (Buffer.byteLength(name) > FIELD_NAME_BYTES) {
    return invalid(`A field name is longer than ${FIELD_NAME_BYTES} bytes.`, name)
  }
  const [base = '', ...keys] = name.split(/[[\]]/)
  if ([base, ...keys].some((key) => PROTOTYPE_NAMES.has(key)))
    return invalid(`Field name ${quoted(name)} is not allowed.`, name)
  if (base !== name && PLAIN_NAMES.has(base)) {
    return invalid(`Field ${quoted(base)} takes one value; ${quoted(name)} is not accepted.`, name)
  }
  if (earlier.has(name) && !name.endsWith('[]')) return invalid(`Field ${quoted(name)} is given more than once.`, name)
  return undefined
}

/** Why a file part is refused; undefined for the one part named `file` that carries a file name. */
export function faultOfFilePart(
  name: string,
  filename: string | undefined,
  isFirst: boolean,
): GatewayError | undefined {
  if (name !== 'file')
    return invalid(`Only one file part, named "file", is accepted; got file part ${quoted(name)}.`, name)
  if (!isFirst) return invalid('Only one file part, named "file", is accepted; got a second one.', name)
  return filename === undefined || safeFileName(filename) === '' ? missingFileName(name) : undefined
}

/** The base name of a client's file name, without control and formatting characters, its extension kept; may be empty. */
export function safeFileName(raw: string): string {
  const base = raw.slice(Math.max(raw.lastIndexOf('/'), raw.lastIndexOf('\\')) + 1)
  // Browsers send line ends in names as %0D and %0A.
  const characters = Array.from(base.replace(/%0d|%0a|[\p{Cc}\p{Cf}\p{Cs}]/giu, '').trim())
  const dot = characters.lastIndexOf('.')
  const extension = dot > 0 ? characters.slice(dot, dot + EXTENSION_CHARACTERS) : []
  const stem = characters.slice(0, dot > 0 ? dot : undefined).slice(0, FILE_NAME_CHARACTERS - extension.length)
  return [...stem, ...extension].join('')
}

function missingFileName(name: string): GatewayError {
  return invalid(`Expected ${quoted(name)} to be a file part with a filename.`, name)
}

function invalid(message: string, param: string): GatewayError {
  return new GatewayError('invalid_request', message, { param })
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, FIELD_NAME_BYTES))
}
