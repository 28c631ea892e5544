import {
  decimal,
  fault,
  type FieldFault,
  type FieldRule,
  isRecord,
  missing,
  oneOf,
  optional,
  record,
} from '../core/validation-rules.js'

export const CAMERA_AXES = ['horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom'] as const

/** Only `simple` is steered by numbers; the others are whole movements of the upstream's own. */
const STEERED = 'simple'
export const CAMERA_TYPES = [STEERED, 'down_back', 'forward_up', 'right_turn_forward', 'left_turn_forward'] as const

export const MAXIMUM_CAMERA_MOVE = 10

const move = optional(decimal({ minimum: -MAXIMUM_CAMERA_MOVE, maximum: MAXIMUM_CAMERA_MOVE }))
const config = record(Object.fromEntries(CAMERA_AXES.map((axis) => [axis, move])))
const shape = record({ type: optional(oneOf(CAMERA_TYPES)), config: optional(config) })

/** `camera_control {type, config}` by the upstream's rules: a movement of one axis, or a named movement without numbers. */
export const cameraControl: FieldRule = (value, path) => {
  const found = shape(value, path)
  if (found !== undefined || !isRecord(value)) return found
  const moves = isRecord(value['config']) ? value['config'] : undefined
  if (value['type'] === STEERED) return steeredFault(moves, `${path}.config`)
  // The upstream takes an object without a type as well; what it makes of it is its own business.
  return typeof value['type'] === 'string' ? presetFault(value['type'], moves, `${path}.config`) : undefined
}

function steeredFault(moves: Readonly<Record<string, unknown>> | undefined, path: string): FieldFault | undefined {
  if (moves === undefined) return missing(path)
  const moved = CAMERA_AXES.filter((axis) => typeof moves[axis] === 'number' && moves[axis] !== 0)
  if (moved.length === 1) return undefined
  return fault(path, 'invalid_value', `Invalid '${path}': exactly one of its values must not be 0.`)
}

function presetFault(
  type: string,
  moves: Readonly<Record<string, unknown>> | undefined,
  path: string,
): FieldFault | undefined {
  if (moves === undefined || Object.keys(moves).length === 0) return undefined
  return fault(path, 'invalid_value', `Invalid '${path}': it must be absent or empty when the type is '${type}'.`)
}
