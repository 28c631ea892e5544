import type { JsonText, JsonTexts } from '../../../core/json-text.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { Verdicts } from '../../verdicts.js'
import {
  dropUnknown,
  isAbsent,
  listAt,
  type Members,
  objectAt,
  optionalTextAt,
  textAt,
  wrongShape,
} from '../members.js'
import type { NamedTool, Tool, ToolChoice } from '../tools.js'

const FUNCTION = new Set(['type', 'name', 'description', 'parameters', 'strict', 'allowed_callers', 'defer_loading'])
const CUSTOM = new Set(['type', 'name', 'description', 'format', 'allowed_callers', 'defer_loading'])

const TEXT_FORMAT = new Set(['type'])
const GRAMMAR_FORMAT = new Set(['type', 'syntax', 'definition'])
const NAMED_CHOICE = new Set(['type', 'name'])
const ALLOWED_CHOICE = new Set(['type', 'mode', 'tools'])

const ONLY_CALLABLE = 'Send functions and custom tools, which the caller runs.'

/** Reads the tools; `texts` is the request as it was spelled. Throws `invalid_request`, also for tools that upstreams run. */
export function readTools(
  tools: unknown,
  { texts, verdicts }: { readonly texts: JsonTexts; readonly verdicts: Verdicts },
): readonly Tool[] {
  return listAt(tools, 'tools').map((value, index) => {
    const path = `tools[${index}]`
    const tool = objectAt(value, path)
    const { type } = tool
    if (type !== 'function' && type !== 'custom') return verdicts.refuse(`${path}.type`, ONLY_CALLABLE)
    dropUnknown(tool, type === 'function' ? FUNCTION : CUSTOM, path, verdicts)
    checkCallers(tool, path, verdicts)
    const head = {
      path,
      bodyPath: path,
      name: textAt(tool['name'], `${path}.name`),
      description: optionalTextAt(tool['description'], `${path}.description`),
    }
    return type === 'custom'
      ? { ...head, kind: type, grammar: grammarOf(tool['format'], path, verdicts) }
      : readFunction(tool, head, texts.at('tools', index, 'parameters')?.text, verdicts)
  })
}

function readFunction(
  tool: Members,
  head: Omit<Tool, 'kind'>,
  spelled: JsonText | undefined,
  verdicts: Verdicts,
): Tool {
  const { parameters } = tool
  const schema = isAbsent(parameters) ? undefined : objectAt(parameters, `${head.path}.parameters`)
  return {
    ...head,
    kind: 'function',
    parameters: schema === undefined || spelled === undefined ? undefined : { schema, spelled },
    strict: strictOf(tool, schema !== undefined, head.path, verdicts),
  }
}

/**
 * True by default in this dialect, but not all models have strict tools, and of schemas upstreams take few as strict: only the caller
 * can say so. It means nothing for a function that takes nothing.
 */
function strictOf({ strict }: Members, hasParameters: boolean, path: string, verdicts: Verdicts): boolean {
  if (typeof strict === 'boolean') return strict
  if (!isAbsent(strict)) throw wrongShape(`${path}.strict`, 'a boolean', strict)
  if (hasParameters) verdicts.approximate(`${path}.strict`, `Send ${path}.strict: false, or true with a closed schema`)
  return false
}

/** Tools that are loaded later, or called from programs, need an upstream that does so. */
function checkCallers(tool: Members, path: string, verdicts: Verdicts): void {
  const { allowed_callers: callers, defer_loading: isDeferred } = tool
  if (isDeferred === true) verdicts.refuse(`${path}.defer_loading`, 'Send the tool without it.')
  if (isAbsent(callers)) return
  const others = listAt(callers, `${path}.allowed_callers`).filter((caller) => caller !== 'direct')
  if (others.length > 0) verdicts.refuse(`${path}.allowed_callers`, 'Only direct calls are served.')
}

function grammarOf(format: unknown, path: string, verdicts: Verdicts): Members | undefined {
  if (isAbsent(format)) return undefined
  const grammar = objectAt(format, `${path}.format`)
  const { type } = grammar
  if (type !== 'text' && type !== 'grammar') return verdicts.refuse(`${path}.format.type`, 'Send text or grammar.')
  dropUnknown(grammar, type === 'text' ? TEXT_FORMAT : GRAMMAR_FORMAT, `${path}.format`, verdicts)
  return type === 'text' ? undefined : grammar
}

/** Reads `tool_choice`. Throws `invalid_request`, also for tools that upstreams run. */
export function readToolChoice(choice: unknown, verdicts: Verdicts): ToolChoice {
  const path = 'tool_choice'
  if (choice === 'none' || choice === 'auto' || choice === 'required') return { kind: choice, path }
  const object = isRecord(choice) ? choice : verdicts.refuse(path, 'Send none, auto, required or an object.')
  if (object['type'] === 'allowed_tools') return allowedTools(object, path, verdicts)
  return { kind: 'named', path, tool: namedTool(object, path, verdicts) }
}

function allowedTools(choice: Members, path: string, verdicts: Verdicts): ToolChoice {
  dropUnknown(choice, ALLOWED_CHOICE, path, verdicts)
  const { mode, tools } = choice
  if (mode !== 'auto' && mode !== 'required') verdicts.refuse(`${path}.mode`, 'Send auto or required.')
  return {
    kind: 'allowed',
    path,
    isRequired: mode === 'required',
    tools: listAt(tools, `${path}.tools`).map((tool, index) => {
      const toolPath = `${path}.tools[${index}]`
      return namedTool(objectAt(tool, toolPath), toolPath, verdicts)
    }),
  }
}

function namedTool(tool: Members, path: string, verdicts: Verdicts): NamedTool {
  const { type, name } = tool
  if (type !== 'function' && type !== 'custom') return verdicts.refuse(`${path}.type`, ONLY_CALLABLE)
  dropUnknown(tool, NAMED_CHOICE, path, verdicts)
  return { kind: type, name: textAt(name, `${path}.name`), path }
}
