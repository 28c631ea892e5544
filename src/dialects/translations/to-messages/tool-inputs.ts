import { isRecord } from '../../../core/validation-rules.js'
import { parsedOr } from '../members.js'

/** Every tool takes an object upstream, also one that takes nothing. */
export const NO_INPUT = { type: 'object', properties: {} }

/** What a custom tool takes upstream: one text. */
export const TEXT_INPUT = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }

/** The text that a custom tool is called with; all of the input, where the model did not keep to the form, or was cut. */
export function customInput(json: string): string {
  const value = parsedOr(json)
  const input = isRecord(value) && Object.keys(value).length === 1 ? value['input'] : undefined
  return typeof input === 'string' ? input : json
}
