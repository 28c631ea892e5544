import { fieldOf, isObject, type JsonObject, textOf } from '../server/json-value.js'
import { imageList } from './image-rules.js'
import { boolean, decimal, fields, isAbsent, oneOf, text, textUpTo, type ValueRule, webAddress } from './value-rules.js'
import { rejectField, VidgenRejection } from './vidgen-errors.js'

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
