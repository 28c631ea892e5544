import { fault, type FieldFault, type FieldRule, text } from '../core/validation-rules.js'
import { Base64Payload } from './base64-payload.js'
import { formatOf, sizeOf } from './image-rules.js'

/** Specification: Image rules. MB are counted as everywhere in the gateway: 1,048,576 bytes. */
export const MAXIMUM_IMAGE_BYTES = 10 * 1024 * 1024
export const MINIMUM_IMAGE_PIXELS = 300
/** The longer side is at most 5/2 of the shorter one; in whole numbers, so that the bound itself is exact. */
export const MAXIMUM_IMAGE_RATIO = { longer: 5, shorter: 2 } as const

const MAXIMUM_URL_CHARACTERS = 2_048

const notEmpty = text({ allowBlank: false })

/** `image`: a public URL, passed on unfetched, or raw Base64, judged by its length and its first bytes. */
export const image: FieldRule = (value, path) => {
  const shape = notEmpty(value, path)
  if (shape !== undefined || typeof value !== 'string') return shape
  return /^https?:\/\//i.test(value.slice(0, 8)) ? urlFault(value, path) : base64Fault(value, path)
}

const invalid = (path: string, what: string, code = 'invalid_image'): FieldFault =>
  fault(path, code, `Invalid '${path}': ${what}.`)

function urlFault(value: string, path: string): FieldFault | undefined {
  if (value.length > MAXIMUM_URL_CHARACTERS) {
    return invalid(path, `expected a URL with at most ${MAXIMUM_URL_CHARACTERS} characters`, 'invalid_url')
  }
  // The parser removes white space in silence; the upstream would get it.
  if (/\s/.test(value) || !URL.canParse(value)) return invalid(path, 'expected a well-formed URL', 'invalid_url')
  const { username, password } = new URL(value)
  if (username === '' && password === '') return undefined
  return invalid(path, 'the URL must not hold a user or a password', 'invalid_url')
}

function base64Fault(value: string, path: string): FieldFault | undefined {
  if (/^data:/i.test(value.slice(0, 5))) return invalid(path, 'expected raw Base64 without a data: prefix')
  const payload = new Base64Payload(value)
  if (payload.byteLength > MAXIMUM_IMAGE_BYTES) {
    return invalid(path, `the image is larger than ${MAXIMUM_IMAGE_BYTES} bytes`, 'image_too_large')
  }
  if (!payload.isStrict()) return invalid(path, 'expected an http or https URL or raw Base64')
  const format = formatOf(payload)
  if (format === undefined) return invalid(path, 'supported formats are jpg, jpeg and png', 'unsupported_format')
  const size = sizeOf(payload, format)
  if (size === undefined) return invalid(path, `the ${format} header is broken or cut off`)
  return sizeFault(size.width, size.height, path)
}

function sizeFault(width: number, height: number, path: string): FieldFault | undefined {
  const shorter = Math.min(width, height)
  const longer = Math.max(width, height)
  const found = `but it has ${width} x ${height}`
  if (shorter < MINIMUM_IMAGE_PIXELS) {
    return invalid(path, `both sides must have at least ${MINIMUM_IMAGE_PIXELS} pixels, ${found}`)
  }
  if (longer * MAXIMUM_IMAGE_RATIO.shorter <= shorter * MAXIMUM_IMAGE_RATIO.longer) return undefined
  return invalid(path, `the aspect ratio must lie between 1:2.5 and 2.5:1, ${found}`)
}
