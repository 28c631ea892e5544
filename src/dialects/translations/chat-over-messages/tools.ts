import type { JsonText, JsonTexts } from '../../../core/json-text.js'
import type { ModelFacts } from '../../model-facts.js'
import type { Verdicts } from '../../verdicts.js'
import { dropUnknown, invalidShape, isAbsent, type Members, objectAt, optionalListAt, textAt } from '../members.js'
import { NO_INPUT, objectSchema, TEXT_INPUT } from '../tool-forms.js'

/** A tool of the upstream. */
interface Tool {
  readonly name: string
  readonly path: string
  /** Takes a text instead of arguments. */
  readonly isCustom: boolean
  readonly fields: Members
}

/** What the upstream's model may call, and must. */
export interface ToolFields {
  readonly tools?: readonly Members[]
  readonly tool_choice?: Members
  /** The caller's tools, in the order of the upstream's. */
  readonly paths: readonly string[]
  /** Names of tools that take a text. */
  readonly customNames: ReadonlySet<string>
  /** The caller knows only the old form, of one call in an answer. */
  readonly isLegacy: boolean
  readonly isForced: boolean
}

/** Of `tools`, `functions`, `tool_choice`, `function_call` and `parallel_tool_calls`. */
export function toolFields(body: Members, texts: JsonTexts, facts: ModelFacts, verdicts: Verdicts): ToolFields {
  const functions = optionalListAt(body['functions'], 'functions').map((value, index) =>
    functionTool(value, `functions[${index}]`, `functions[${index}]`, texts.at('functions', index), verdicts),
  )
  const tools = optionalListAt(body['tools'], 'tools').map((value, index) =>
    toolOf(value, `tools[${index}]`, texts.at('tools', index), verdicts),
  )
  const isLegacy = functions.length > 0 && tools.length === 0
  const choice = choiceOf(body, [...tools, ...functions], verdicts)
  const isForced = choice.fields?.['type'] === 'any' || choice.fields?.['type'] === 'tool'
  if (isForced && !facts.forcedToolChoice) {
    verdicts.refuse(
      isAbsent(body['tool_choice']) ? 'function_call' : 'tool_choice',
      'The model can only be let choose: auto.',
    )
  }
  const allowed = choice.tools
  const isSerial = isLegacy || !mayCallInParallel(body['parallel_tool_calls'])
  return {
    ...(allowed.length === 0 ? {} : { tools: allowed.map(({ fields }) => fields) }),
    ...choiceFields(choice, isSerial),
    paths: allowed.map(({ path }) => path),
    customNames: new Set(allowed.filter(({ isCustom }) => isCustom).map(({ name }) => name)),
    isLegacy,
    isForced,
  }
}

function mayCallInParallel(value: unknown): boolean {
  if (isAbsent(value) || typeof value === 'boolean') return value !== false
  throw invalidShape('parallel_tool_calls', 'true or false')
}

const TOOL_MEMBERS: ReadonlySet<string> = new Set(['type', 'function', 'custom'])
const FUNCTION_MEMBERS: ReadonlySet<string> = new Set(['name', 'description', 'parameters', 'strict'])
const CUSTOM_MEMBERS: ReadonlySet<string> = new Set(['name', 'description', 'format'])

function toolOf(value: unknown, path: string, texts: JsonTexts | undefined, verdicts: Verdicts): Tool {
  const tool = objectAt(value, path)
  dropUnknown(tool, TOOL_MEMBERS, path, verdicts)
  const { type } = tool
  if (type === 'function') {
    return functionTool(tool['function'], path, `${path}.function`, texts?.at('function'), verdicts)
  }
  if (type !== 'custom') return verdicts.refuse(`${path}.type`, 'Send functions or custom tools.')
  const customPath = `${path}.custom`
  const custom = objectAt(tool['custom'], customPath)
  dropUnknown(custom, CUSTOM_MEMBERS, customPath, verdicts)
  const { format } = custom
  if (!isAbsent(format) && objectAt(format, `${customPath}.format`)['type'] !== 'text') {
    verdicts.refuse(`${customPath}.format`, 'Send a custom tool without a grammar.')
  }
  const name = textAt(custom['name'], `${customPath}.name`)
  const fields = { name, ...description(custom, customPath), input_schema: TEXT_INPUT }
  return { name, path, isCustom: true, fields }
}

function functionTool(
  value: unknown,
  path: string,
  functionPath: string,
  texts: JsonTexts | undefined,
  verdicts: Verdicts,
): Tool {
  const called = objectAt(value, functionPath)
  dropUnknown(called, FUNCTION_MEMBERS, functionPath, verdicts)
  const name = textAt(called['name'], `${functionPath}.name`)
  const input_schema = schemaOf(called['parameters'], `${functionPath}.parameters`, texts?.at('parameters')?.text)
  const strict = called['strict'] === true ? { strict: true } : {}
  return {
    name,
    path,
    isCustom: false,
    fields: { name, ...description(called, functionPath), input_schema, ...strict },
  }
}

function description({ description: text }: Members, path: string): Members {
  return isAbsent(text) || text === '' ? {} : { description: textAt(text, `${path}.description`) }
}

function schemaOf(parameters: unknown, path: string, text: JsonText | undefined): object {
  if (isAbsent(parameters) || text === undefined) return NO_INPUT
  return objectSchema(objectAt(parameters, path), text)
}

interface Choice {
  /** Those that may be called. */
  readonly tools: readonly Tool[]
  readonly fields?: Members
}

function choiceFields({ tools, fields }: Choice, isSerial: boolean): Pick<ToolFields, 'tool_choice'> {
  if (tools.length === 0) return {}
  if (!isSerial || fields?.['type'] === 'none') return fields === undefined ? {} : { tool_choice: fields }
  return { tool_choice: { ...(fields ?? { type: 'auto' }), disable_parallel_tool_use: true } }
}

const MODES: Readonly<Record<string, Members>> = {
  none: { type: 'none' },
  auto: { type: 'auto' },
  required: { type: 'any' },
}

function choiceOf(body: Members, tools: readonly Tool[], verdicts: Verdicts): Choice {
  const isOld = isAbsent(body['tool_choice'])
  const path = isOld ? 'function_call' : 'tool_choice'
  const value = body[path]
  if (isAbsent(value)) return { tools }
  if (typeof value === 'string') return { tools, fields: modeOf(value, path, tools) }
  const choice = objectAt(value, path)
  if (choice['type'] === 'allowed_tools') return allowedTools(choice, path, tools, verdicts)
  const name = isOld ? textAt(choice['name'], `${path}.name`) : named(choice, path)
  if (!tools.some((tool) => tool.name === name)) throw invalidShape(path, "one of the request's tools")
  return { tools, fields: { type: 'tool', name } }
}

function modeOf(mode: string, path: string, tools: readonly Tool[]): Members {
  const fields = Object.hasOwn(MODES, mode) ? MODES[mode] : undefined
  if (fields === undefined) throw invalidShape(path, 'none, auto, required or an object')
  if (mode === 'required' && tools.length === 0) throw invalidShape(path, 'no choice without tools')
  return fields
}

/** The name in `{type: 'function', function: {name}}`, and the same of custom tools. */
function named(choice: Members, path: string): string {
  const type = choice['type']
  if (type !== 'function' && type !== 'custom') throw invalidShape(`${path}.type`, 'function, custom or allowed_tools')
  return textAt(objectAt(choice[type], `${path}.${type}`)['name'], `${path}.${type}.name`)
}

/** Only these are sent, which cuts the upstream's prompt cache at the tools. */
function allowedTools(choice: Members, path: string, tools: readonly Tool[], verdicts: Verdicts): Choice {
  const allowedPath = `${path}.allowed_tools`
  const { mode, tools: list } = objectAt(choice['allowed_tools'], allowedPath)
  const known = new Set(tools.map(({ name }) => name))
  const names = new Set<string>()
  optionalListAt(list, `${allowedPath}.tools`).forEach((value, index) => {
    const toolPath = `${allowedPath}.tools[${index}]`
    const name = named(objectAt(value, toolPath), toolPath)
    if (!known.has(name)) throw invalidShape(toolPath, "one of the request's tools")
    names.add(name)
  })
  const fields = mode === 'required' || mode === 'auto' ? MODES[mode] : undefined
  if (fields === undefined) throw invalidShape(`${allowedPath}.mode`, 'auto or required')
  if (names.size === 0) throw invalidShape(`${allowedPath}.tools`, 'at least one tool')
  verdicts.approximate(path)
  return { tools: tools.filter(({ name }) => names.has(name)), fields }
}
