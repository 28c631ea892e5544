import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { reject } from '../server/openai-errors.js'
import { boolean, missing, nullable, object, oneOf, string, wrongType } from './chat-field-rules.js'
import { judgeGrammar, judgeParameters, judgeToolName } from './chat-request.js'
import { anything, listOfRule, shape } from './responses-field-rules.js'

/** Tools that the upstream runs by itself. They are accepted; the simulator never calls them. */
const HOSTED_TOOLS = [
  'file_search',
  'computer',
  'computer_use_preview',
  'web_search',
  'web_search_2025_08_26',
  'mcp',
  'code_interpreter',
  'programmatic_tool_calling',
  'image_generation',
  'local_shell',
  'shell',
  'namespace',
  'tool_search',
  'web_search_preview',
  'web_search_preview_2025_03_11',
  'apply_patch',
]

const HOSTED_CHOICES = [
  'file_search',
  'web_search_preview',
  'computer',
  'computer_use_preview',
  'computer_use',
  'web_search_preview_2025_03_11',
  'image_generation',
  'code_interpreter',
  'mcp',
  'programmatic_tool_calling',
  'apply_patch',
  'shell',
]

const COMMON = {
  type: anything,
  name: anything,
  description: nullable(string()),
  allowed_callers: nullable(listOfRule(oneOf('direct', 'programmatic'))),
  defer_loading: boolean,
}

const FUNCTION = shape({
  ...COMMON,
  parameters: nullable(object),
  strict: nullable(boolean),
  output_schema: nullable(object),
})

const CUSTOM = shape({ ...COMMON, format: object })

/** Judges `tools` and `tool_choice`, which are flat here. Throws OpenAiRejection. */
export function judgeResponsesTools(body: JsonObject): void {
  listOf(body['tools']).forEach((tool, index) => {
    judgeTool(tool, `tools[${index}]`)
  })
  if (body['tool_choice'] != null) judgeChoice(body['tool_choice'], objectsOf(body['tools']))
}

function judgeTool(tool: unknown, path: string): void {
  if (!isObject(tool)) wrongType(path, 'an object', tool)
  if (tool['type'] === undefined) missing(`${path}.type`)
  oneOf('function', 'custom', ...HOSTED_TOOLS)(tool['type'], `${path}.type`)
  if (!isCallable(tool)) return
  const name = judgeToolName(tool['name'], `${path}.name`)
  if (tool['type'] === 'function') {
    FUNCTION(tool, path)
    if (tool['parameters'] != null) judgeParameters(tool, name, `${path}.parameters`)
    return
  }
  CUSTOM(tool, path)
  const format = tool['format']
  if (format === undefined) return
  oneOf('text', 'grammar')(fieldOf(format, 'type'), `${path}.format.type`)
  if (fieldOf(format, 'type') === 'grammar') judgeGrammar(format, `${path}.format`)
}

const isCallable = (tool: JsonObject): boolean => tool['type'] === 'function' || tool['type'] === 'custom'

function judgeChoice(choice: unknown, tools: readonly JsonObject[]): void {
  const path = 'tool_choice'
  if (typeof choice === 'string') {
    oneOf('none', 'auto', 'required')(choice, path)
    if (choice === 'required' && tools.length === 0) {
      reject("Tool choice 'required' must be specified with 'tools' parameter.", path)
    }
    return
  }
  if (!isObject(choice)) wrongType(path, 'one of a string or object', choice)
  oneOf('function', 'custom', 'allowed_tools', ...HOSTED_CHOICES)(choice['type'], `${path}.type`)
  if (isCallable(choice)) {
    shape({ type: anything, name: string() }, 'name')(choice, path)
    judgeNamed(choice, tools)
  }
  if (choice['type'] !== 'allowed_tools') return
  const allowed = { type: anything, mode: oneOf('auto', 'required'), tools: listOfRule(object) }
  shape(allowed, 'mode', 'tools')(choice, path)
  for (const tool of objectsOf(choice['tools'])) judgeNamed(tool, tools)
}

function judgeNamed(wanted: JsonObject, tools: readonly JsonObject[]): void {
  const isThere = tools.some((tool) => tool['type'] === wanted['type'] && tool['name'] === wanted['name'])
  if (!isThere) reject(`Tool choice '${textOf(wanted['name'])}' not found in 'tools' parameter.`, 'tool_choice')
}

/** The functions and custom tools as chat writes them: what they are called with is decided by its rules. */
export function chatTools(body: JsonObject): readonly JsonObject[] {
  return objectsOf(body['tools']).filter(isCallable).map(chatTool)
}

/** A choice as chat writes it; one of a hosted tool calls none of the caller's. */
export function chatToolChoice(body: JsonObject): unknown {
  const choice = body['tool_choice']
  if (!isObject(choice)) return choice ?? undefined
  if (isCallable(choice)) return chatTool(choice)
  if (choice['type'] !== 'allowed_tools') return 'none'
  const tools = objectsOf(choice['tools']).filter(isCallable).map(chatTool)
  return { type: 'allowed_tools', allowed_tools: { mode: choice['mode'], tools } }
}

function chatTool(tool: JsonObject): JsonObject {
  const type = textOf(tool['type'])
  const { name, parameters } = tool
  return { type, [type]: { name, ...(isObject(parameters) ? { parameters } : {}) } }
}

/** The tools as a response says them back: with what was left out. */
export function saidBackTools(body: JsonObject): readonly JsonObject[] {
  return objectsOf(body['tools']).map((tool) => {
    if (tool['type'] === 'custom') return { description: null, format: { type: 'text' }, ...tool }
    if (tool['type'] !== 'function') return tool
    return {
      ...tool,
      description: tool['description'] ?? null,
      parameters: tool['parameters'] ?? null,
      strict: tool['strict'] ?? true,
    }
  })
}
