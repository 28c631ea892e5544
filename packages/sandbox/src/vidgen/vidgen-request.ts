import { fieldOf, isBase64, isObject, type JsonObject, textOf } from '../server/json-value.js'
import { rejectField, VidgenRejection } from './vidgen-errors.js'

/** Judges one value that is there; `field` is the name the refusal carries. Throws VidgenRejection 1201. */
type ValueRule = (value: unknown, field: string) => void

const text: ValueRule = (value, field) => {
  if (typeof value !== 'string') rejectField(field, 'must be a string')
}

/** Counted in code points. */
function textUpTo(limit: number): ValueRule {
  return (value, field) => {
    if (typeof value !== 'string') rejectField(field, 'must be a string')
    const length = Array.from(value).length
    if (length > limit) rejectField(field, `must have at most ${limit} characters, got ${length}`)
  }
}

const boolean: ValueRule = (value, field) => {
  if (typeof value !== 'boolean') rejectField(field, 'must be a boolean')
}

function decimal(min: number, max: number): ValueRule {
  return (value, field) => {
    if (typeof value !== 'number' || value < min || value > max) {
      rejectField(field, `must be a number between ${min} and ${max}`)
    }
  }
}

function oneOf(...allowed: readonly string[]): ValueRule {
  return (value, field) => {
    if (typeof value !== 'string' || !allowed.includes(value))
      rejectField(field, `must be one of ${allowed.join(', ')}`)
  }
}

const webAddress: ValueRule = (value, field) => {
  if (typeof value !== 'string' || !/^https?:\/\//i.test(value) || !URL.canParse(value)) {
    rejectField(field, 'must be an http or https address')
  }
}

/** An object whose known fields obey the rules; others are ignored. */
function fields(rules: Readonly<Record<string, ValueRule>>, required: readonly string[] = []): ValueRule {
  return (value, field) => {
    const path = (name: string): string => (field === '' ? name : `${field}.${name}`)
    if (!isObject(value)) rejectField(field, 'must be an object')
    for (const name of required) if (isAbsent(fieldOf(value, name))) rejectField(path(name), 'is required')
    for (const [name, rule] of Object.entries(rules)) {
      const entry = fieldOf(value, name)
      if (!isAbsent(entry)) rule(entry, path(name))
    }
  }
}

/** The service takes null and nothing for the same. */
const isAbsent = (value: unknown): boolean => value === undefined || value === null

const MOST_IMAGES = 4
const MOST_BYTES = 10 * 1024 * 1024
const LEAST_PIXELS = 300
const PNG_HEADER = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

/** Width and height in pixels. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** One to four images, each by address or as Base64 without a prefix. Addresses are not fetched. */
const imageList: ValueRule = (value, field) => {
  if (!Array.isArray(value) || value.length < 1 || value.length > MOST_IMAGES) {
    rejectField(field, `must be an array of 1 to ${MOST_IMAGES} images`)
  }
  value.forEach((entry: unknown, index) => {
    fields({ image }, ['image'])(entry, `${field}[${index}]`)
  })
}

const image: ValueRule = (value, field) => {
  if (typeof value !== 'string' || value === '') rejectField(field, 'must be an address or Base64')
  if (/^https?:/i.test(value)) webAddress(value, field)
  else judgeBytes(bytesOf(value, field), field)
}

function bytesOf(value: string, field: string): Buffer {
  if (/^data:/i.test(value)) rejectField(field, 'must be Base64 without the prefix data:')
  if (value.length % 4 !== 0 || !isBase64(value)) rejectField(field, 'is not valid Base64')
  return Buffer.from(value, 'base64')
}

function judgeBytes(bytes: Buffer, field: string): void {
  if (bytes.length > MOST_BYTES) rejectField(field, 'must have at most 10 MB')
  const size = pngSize(bytes) ?? jpegSize(bytes)
  if (size === undefined) rejectField(field, 'must be a jpg, jpeg or png')
  const { width, height } = size
  if (width < LEAST_PIXELS || height < LEAST_PIXELS) {
    rejectField(field, `must be at least ${LEAST_PIXELS} pixels wide and high, got ${width} x ${height}`)
  }
  // Between 1:2.5 and 2.5:1, in whole numbers so that the bounds themselves are exact.
  if (width * 2 > height * 5 || height * 2 > width * 5) {
    rejectField(field, `must have a ratio between 1:2.5 and 2.5:1, got ${width} x ${height}`)
  }
}

export function pngSize(bytes: Buffer): ImageSize | undefined {
  if (bytes.length < 24 || !bytes.subarray(0, PNG_HEADER.length).equals(PNG_HEADER)) return undefined
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** From the frame header; undefined when the file ends before it. */
export function jpegSize(bytes: Buffer): ImageSize | undefined {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return undefined
  let at = 2
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0
    if (isFrameHeader(marker)) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    // A fill byte before the marker stands alone; a segment tells its length.
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

/** SOF0 to SOF15, without the tables that lie among them. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

/** Which part of a list; `pageNum` counts from 1. */
export interface VidgenPage {
  readonly pageNum: number
  readonly pageSize: number
}

/** Throws VidgenRejection 1201. */
export function judgePage(query: URLSearchParams): VidgenPage {
  return { pageNum: pageNumber(query, 'pageNum', 1, 1000), pageSize: pageNumber(query, 'pageSize', 30, 500) }
}

function pageNumber(query: URLSearchParams, name: string, otherwise: number, most: number): number {
  const text = query.get(name) ?? String(otherwise)
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (value < 1 || value > most) rejectField(name, `must be a whole number from 1 to ${most}`)
  return value
}

export const VIDGEN_KINDS = ['multi-image2video', 'text2video'] as const
export type VidgenKind = (typeof VIDGEN_KINDS)[number]

/** What follows a model's prefix. */
const TEXT_MODELS = ['v1', 'v1-6', 'v2-master', 'v2-1-master', 'v2-5-turbo', 'v2-6', 'v3']
const MULTI_IMAGE_MODELS = ['v1-6']
const PROMPT_LIMIT = 2500
const MOVEMENTS = ['horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom'] as const
const PRESETS = ['down_back', 'forward_up', 'right_turn_forward', 'left_turn_forward']
const USUAL_DURATIONS = ['5', '10']

/** Fields both kinds have. */
const COMMON = {
  prompt: textUpTo(PROMPT_LIMIT),
  negative_prompt: textUpTo(PROMPT_LIMIT),
  mode: oneOf('std', 'pro'),
  aspect_ratio: oneOf('16:9', '9:16', '1:1'),
  watermark_info: fields({ enabled: boolean }),
  callback_url: webAddress,
  external_task_id: text,
} satisfies Readonly<Record<string, ValueRule>>

/** The newest model takes any whole number of seconds from 3 to 15, the others two only. */
function durations(model: string): readonly string[] {
  return model.endsWith('-v3') ? Array.from({ length: 13 }, (_, index) => String(index + 3)) : USUAL_DURATIONS
}

/**
 * Judges a create as strictly as the service; fields it does not know are ignored, as the service does. `modelPrefix`
 * begins every model's name. Throws VidgenRejection.
 */
export function judgeCreate(kind: VidgenKind, body: JsonObject | undefined, modelPrefix: string): JsonObject {
  if (body === undefined) throw new VidgenRejection(1200, 'The body is not a JSON object')
  const [models, otherwise] = kind === 'text2video' ? [TEXT_MODELS, 'v1'] : [MULTI_IMAGE_MODELS, 'v1-6']
  const names = models.map((model) => modelPrefix + model)
  const model = textOf(body['model_name'] ?? modelPrefix + otherwise)
  const rules = { ...COMMON, model_name: oneOf(...names), duration: oneOf(...durations(model)) }
  if (kind === 'text2video') fields({ ...rules, ...TEXT_ONLY }, ['prompt'])(body, '')
  else fields({ ...rules, image_list: imageList }, ['image_list', 'prompt'])(body, '')
  if (textOf(body['prompt']).trim() === '') rejectField('prompt', 'is required')
  return body
}

const cameraControl: ValueRule = (value, field) => {
  fields({ type: oneOf('simple', ...PRESETS) }, ['type'])(value, field)
  const config = fieldOf(value, 'config')
  const name = `${field}.config`
  if (fieldOf(value, 'type') === 'simple') judgeMovement(config, name)
  else if (!isAbsent(config) && !(isObject(config) && Object.keys(config).length === 0)) {
    rejectField(name, 'must be empty unless the type is simple')
  }
}

function judgeMovement(config: unknown, name: string): void {
  if (isAbsent(config)) rejectField(name, 'is required')
  fields(Object.fromEntries(MOVEMENTS.map((movement) => [movement, decimal(-10, 10)])))(config, name)
  const moving = MOVEMENTS.map((movement) => fieldOf(config, movement)).filter(
    (value) => !isAbsent(value) && value !== 0,
  )
  if (moving.length !== 1) rejectField(name, 'must have exactly one value other than 0')
}

const TEXT_ONLY = { cfg_scale: decimal(0, 1), sound: oneOf('on', 'off'), camera_control: cameraControl }
