import type { JsonTexts } from '../../../core/json-text.js'
import type { Verdicts } from '../../verdicts.js'
import {
  dropUnknown,
  invalidShape,
  isAbsent,
  type Members,
  objectAt,
  optionalListAt,
  optionalTextAt,
  textAt,
  wrongShape,
} from '../members.js'
import { type MessagesTools, messagesTools, type ToolContext } from '../to-messages/tools.js'
import type { NamedTool, Tool, ToolChoice } from '../tools.js'

export interface ChatTools extends MessagesTools {
  /** The caller knows only the old form, of one call in an answer. */
  readonly isLegacy: boolean
}

/** Of `tools`, `functions`, `tool_choice`, `function_call` and `parallel_tool_calls`. */
export function chatTools(body: Members, texts: JsonTexts, context: ToolContext): ChatTools {
  const { verdicts } = context
  const functions = optionalListAt(body['functions'], 'functions').map((value, index) =>
    functionTool(value, `functions[${index}]`, `functions[${index}]`, texts.at('functions', index), verdicts),
  )
  const tools = optionalListAt(body['tools'], 'tools').map((value, index) =>
    toolOf(value, `tools[${index}]`, texts.at('tools', index), verdicts),
  )
  const isLegacy = functions.length > 0 && tools.length === 0
  const choice = choiceOf(body, verdicts)
  const isSerial = isLegacy || !mayCallInParallel(body['parallel_tool_calls'])
  return { ...messagesTools({ tools: [...tools, ...functions], choice, isSerial }, context), isLegacy }
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
  const bodyPath = `${path}.custom`
  const custom = objectAt(tool['custom'], bodyPath)
  dropUnknown(custom, CUSTOM_MEMBERS, bodyPath, verdicts)
  return { kind: 'custom', ...headOf(custom, path, bodyPath), grammar: grammarOf(custom['format'], bodyPath, verdicts) }
}

function functionTool(
  value: unknown,
  path: string,
  bodyPath: string,
  texts: JsonTexts | undefined,
  verdicts: Verdicts,
): Tool {
  const called = objectAt(value, bodyPath)
  dropUnknown(called, FUNCTION_MEMBERS, bodyPath, verdicts)
  const { parameters, strict } = called
  if (!isAbsent(strict) && typeof strict !== 'boolean') throw wrongShape(`${bodyPath}.strict`, 'a boolean', strict)
  const schema = isAbsent(parameters) ? undefined : objectAt(parameters, `${bodyPath}.parameters`)
  const spelled = texts?.at('parameters')?.text
  return {
    kind: 'function',
    ...headOf(called, path, bodyPath),
    parameters: schema === undefined || spelled === undefined ? undefined : { schema, spelled },
    strict: strict === true,
  }
}

const headOf = ({ name, description }: Members, path: string, bodyPath: string): Omit<Tool, 'kind'> => ({
  path,
  bodyPath,
  name: textAt(name, `${bodyPath}.name`),
  description: optionalTextAt(description, `${bodyPath}.description`),
})

const TEXT_FORMAT: ReadonlySet<string> = new Set(['type'])

function grammarOf(format: unknown, bodyPath: string, verdicts: Verdicts): Members | undefined {
  if (isAbsent(format)) return undefined
  const grammar = objectAt(format, `${bodyPath}.format`)
  if (grammar['type'] !== 'text') return grammar
  dropUnknown(grammar, TEXT_FORMAT, `${bodyPath}.format`, verdicts)
  return undefined
}

const NAME: ReadonlySet<string> = new Set(['name'])
const ALLOWED: ReadonlySet<string> = new Set(['mode', 'tools'])

/** The newer name wins. */
function choiceOf(body: Members, verdicts: Verdicts): ToolChoice | undefined {
  const isOld = isAbsent(body['tool_choice'])
  const path = isOld ? 'function_call' : 'tool_choice'
  const value = body[path]
  if (isAbsent(value)) return undefined
  if (typeof value === 'string') return modeOf(value, path)
  const choice = objectAt(value, path)
  if (choice['type'] === 'allowed_tools') return allowedTools(choice, path, verdicts)
  const tool: NamedTool = isOld
    ? { kind: 'function', name: nameIn(choice, path, verdicts), path }
    : named(choice, path, verdicts)
  return { kind: 'named', path, tool }
}

function nameIn(members: Members, path: string, verdicts: Verdicts): string {
  dropUnknown(members, NAME, path, verdicts)
  return textAt(members['name'], `${path}.name`)
}

function modeOf(kind: string, path: string): ToolChoice {
  if (kind === 'none' || kind === 'auto' || kind === 'required') return { kind, path }
  throw invalidShape(path, 'none, auto, required or an object')
}

/** The name in `{type: 'function', function: {name}}`, and the same of custom tools. */
function named(choice: Members, path: string, verdicts: Verdicts): NamedTool {
  const kind = choice['type']
  if (kind !== 'function' && kind !== 'custom') throw invalidShape(`${path}.type`, 'function, custom or allowed_tools')
  dropUnknown(choice, new Set(['type', kind]), path, verdicts)
  return { kind, name: nameIn(objectAt(choice[kind], `${path}.${kind}`), `${path}.${kind}`, verdicts), path }
}

function allowedTools(choice: Members, path: string, verdicts: Verdicts): ToolChoice {
  const allowedPath = `${path}.allowed_tools`
  const allowed = objectAt(choice['allowed_tools'], allowedPath)
  dropUnknown(choice, new Set(['type', 'allowed_tools']), path, verdicts)
  dropUnknown(allowed, ALLOWED, allowedPath, verdicts)
  const { mode, tools: list } = allowed
  const tools = optionalListAt(list, `${allowedPath}.tools`).map((value, index) => {
    const toolPath = `${allowedPath}.tools[${index}]`
    return named(objectAt(value, toolPath), toolPath, verdicts)
  })
  if (mode !== 'required' && mode !== 'auto') throw invalidShape(`${allowedPath}.mode`, 'auto or required')
  if (tools.length === 0) throw invalidShape(`${allowedPath}.tools`, 'at least one tool')
  return { kind: 'allowed', path, isRequired: mode === 'required', tools }
}
