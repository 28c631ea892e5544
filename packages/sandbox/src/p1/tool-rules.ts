import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { reject } from '../server/openai-rejection.js'
import { missing, object, oneOf, wrongType } from './value-rules.js'

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/

/** Judges `tools` and `tool_choice` (section 3 of the chat notes). Throws OpenAiRejection. */
export function judgeTools(body: JsonObject): void {
  listOf(body['tools']).forEach((tool, index) => {
    judgeTool(tool, `tools[${index}]`)
  })
  if (body['tool_choice'] !== undefined) judgeToolChoice(body)
}

export function toolName(tool: JsonObject): string {
  return textOf(fieldOf(tool[textOf(tool['type'])], 'name'))
}

function judgeTool(tool: unknown, path: string): void {
  if (!isObject(tool)) wrongType(path, 'an object', tool)
  if (tool['type'] === undefined) missing(`${path}.type`)
  oneOf('function', 'custom')(tool['type'], `${path}.type`)
  const kind = textOf(tool['type'])
  const inner = tool[kind]
  if (inner === undefined) missing(`${path}.${kind}`)
  object(inner, `${path}.${kind}`)
  const name = fieldOf(inner, 'name')
  if (name === undefined) missing(`${path}.${kind}.name`)
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    const expected = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
    reject(
      `Invalid '${path}.${kind}.name': string does not match pattern. ${expected}`,
      `${path}.${kind}.name`,
      'invalid_value',
    )
  }
  if (kind === 'function') judgeParameters(inner as JsonObject, name, `${path}.function.parameters`)
}

function judgeParameters(inner: JsonObject, name: string, path: string): void {
  const schema = inner['parameters']
  if (schema === undefined) return
  const type = fieldOf(schema, 'type')
  if (type !== 'object') {
    badSchema(
      name,
      path,
      `schema must be a JSON Schema of 'type: "object"', got 'type: ${JSON.stringify(type ?? null)}'.`,
    )
  }
  if (inner['strict'] !== true) return
  if (fieldOf(schema, 'additionalProperties') !== false) {
    badSchema(name, path, "In context=(), 'additionalProperties' is required to be supplied and to be false.")
  }
  const properties = fieldOf(schema, 'properties')
  const required = listOf(fieldOf(schema, 'required'))
  const forgotten = Object.keys(isObject(properties) ? properties : {}).find((property) => !required.includes(property))
  if (forgotten === undefined) return
  const rule = "'required' is required to be supplied and to be an array including every key in properties."
  badSchema(name, path, `In context=(), ${rule} Missing '${forgotten}'.`)
}

function badSchema(name: string, path: string, reason: string): never {
  reject(`Invalid schema for function '${name}': ${reason}`, path, 'invalid_function_parameters')
}

function judgeToolChoice(body: JsonObject): void {
  const choice = body['tool_choice']
  const tools = objectsOf(body['tools'])
  if (typeof choice === 'string') oneOf('none', 'auto', 'required')(choice, 'tool_choice')
  else if (!isObject(choice)) wrongType('tool_choice', 'one of a string or object', choice)
  if (tools.length === 0 && choice !== 'none') {
    reject("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", 'tool_choice')
  }
  if (!isObject(choice)) return
  oneOf('function', 'custom', 'allowed_tools')(choice['type'], 'tool_choice.type')
  if (choice['type'] === 'allowed_tools') return
  const name = toolName(choice)
  if (tools.some((tool) => toolName(tool) === name)) return
  reject(`Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice')
}
