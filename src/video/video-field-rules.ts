import { fault, type FieldRule, list, record, required, text } from '../core/validation-rules.js'
import { image } from './image.rule.js'

/** Specification: Limits. In code points. */
export const MAXIMUM_PROMPT_CHARACTERS = 2_500
export const MAXIMUM_IMAGES = 4

export const MODES = ['std', 'pro'] as const
export const ASPECT_RATIOS = ['16:9', '9:16', '1:1'] as const

/** Seconds, as the specification spells them for multi-image video. */
export const MULTI_IMAGE_DURATIONS = ['5', '10'] as const
/** Seconds; 3 to 15 are what the newest model allows, older ones refuse some of them upstream. */
export const TEXT_DURATIONS = ['3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15'] as const

const name = text({ allowBlank: false })

/** A name is logged and stored; a database has no text with a NUL in it. */
export const modelName: FieldRule = (value, path) =>
  name(value, path) ??
  (typeof value === 'string' && /\p{Cc}/u.test(value)
    ? fault(path, 'invalid_value', `Invalid '${path}': it must not hold control characters.`)
    : undefined)

export const prompt = text({ allowBlank: false, maximumCharacters: MAXIMUM_PROMPT_CHARACTERS })
export const negativePrompt = text({ maximumCharacters: MAXIMUM_PROMPT_CHARACTERS })

/** Seconds as a string, as the upstream has them, or as a number, as callers may. */
export const duration = (allowed: readonly string[]): FieldRule => {
  const shown = allowed.map((seconds) => `'${seconds}'`).join(', ')
  return (value, path) => {
    const isAllowed = (typeof value === 'string' || typeof value === 'number') && allowed.includes(String(value))
    if (isAllowed) return undefined
    return fault(path, 'invalid_value', `Invalid value for '${path}'. Supported values are: ${shown}.`)
  }
}

const EXTERNAL_TASK_ID = /^[A-Za-z0-9_.:-]{1,128}$/

export const externalTaskId: FieldRule = (value, path) => {
  const shape = text()(value, path)
  if (shape !== undefined || typeof value !== 'string' || EXTERNAL_TASK_ID.test(value)) return shape
  return fault(
    path,
    'invalid_value',
    `Invalid '${path}': expected 1 to 128 letters, digits, underscores, full stops, colons or hyphens.`,
  )
}

const images = list(record({ image: required(image) }), { minimumItems: 1 })

/** `image_list`: how many is judged before any of them is looked at. */
export const imageList: FieldRule = (value, path) => {
  if (!Array.isArray(value) || value.length <= MAXIMUM_IMAGES) return images(value, path)
  return fault(
    path,
    'array_above_max_length',
    `Invalid '${path}': array too long. Expected at most ${MAXIMUM_IMAGES} items.`,
  )
}
