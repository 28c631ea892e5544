import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { reject } from './m1-errors.js'

const CHOICES = ['auto', 'any', 'tool', 'none']

/** Judges `tools` and `tool_choice` (section 3.3 of the messages notes). Throws M1Rejection. */
export function judgeTools(body: JsonObject): void {
  listOf(body['tools']).forEach((tool, index) => {
    judgeTool(tool, index)
  })
  const names = objectsOf(body['tools']).map((tool) => textOf(tool['name']))
  if (new Set(names).size < names.length) reject('tools: Tool names must be unique.')
  const choice = body['tool_choice']
  if (choice === undefined) return
  const type = textOf(fieldOf(choice, 'type'))
  if (!CHOICES.includes(type)) {
    reject(`tool_choice: Input tag '${type}' found using 'type' does not match any of the expected tags`)
  }
  if (names.length === 0 && type !== 'none') reject('tool_choice may only be specified while providing tools.')
  const name = textOf(fieldOf(choice, 'name'))
  if (type === 'tool' && !names.includes(name)) reject(`Tool '${name}' not found in provided tools`)
  if (type === 'none' && fieldOf(choice, 'disable_parallel_tool_use') !== undefined) {
    reject('tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted')
  }
}

function judgeTool(tool: unknown, index: number): void {
  if (!isObject(tool)) reject(`tools.${index}: Input should be a valid dictionary`)
  const type = tool['type'] ?? 'custom'
  if (tool['name'] === undefined) reject(`tools.${index}.name: Field required`)
  // Server tools carry a dated type and define themselves.
  if (type !== 'custom') return
  if (tool['input_schema'] === undefined) reject(`tools.${index}.custom.input_schema: Field required`)
  if (fieldOf(tool['input_schema'], 'type') !== 'object')
    reject(`tools.${index}.custom.input_schema.type: Input should be 'object'`)
  if (/^[a-zA-Z0-9_-]{1,128}$/.test(textOf(tool['name']))) return
  reject(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
}
