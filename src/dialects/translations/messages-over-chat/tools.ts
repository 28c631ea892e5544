import { GatewayError, quoted } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import { isAbsent, listAt, type Members, objectAt, optionalTextAt, textAt, wrongShape } from '../members.js'
import { isClosedSchema } from '../strict-schema.js'
import { objectSchema } from '../tool-forms.js'
import { dropBreakpoint } from './parts.js'
import { type MemberTable, type ChatRequestDraft } from './request-draft.js'

/** The members of a tool. */
export const TOOL_MEMBERS = {
  type: 'read',
  name: 'read',
  description: 'read',
  input_schema: 'read',
  strict: 'read',
  cache_control: 'read',
  allowed_callers: 'read',
  defer_loading: 'read',
  input_examples: 'drop',
  eager_input_streaming: 'drop',
} as const satisfies MemberTable

export function translateTools(value: unknown, draft: ChatRequestDraft): void {
  const tools = listAt(value, 'tools').map((tool, index) => functionOf(objectAt(tool, `tools[${index}]`), index, draft))
  // Chat upstreams refuse an empty list, which means the same as none.
  if (tools.length > 0) draft.set('tools', tools, 'tools')
}

function functionOf(tool: Members, index: number, draft: ChatRequestDraft): object {
  const path = `tools[${index}]`
  refuseTool(tool, path, draft)
  draft.checkMembers(tool, path, TOOL_MEMBERS)
  dropBreakpoint(tool, path, draft)
  const schema = objectAt(tool['input_schema'], `${path}.input_schema`)
  const name = textAt(tool['name'], `${path}.name`)
  const shortName = draft.toolNames.shortened(name)
  if (shortName !== name) draft.verdicts.approximate(`${path}.name`)
  const description = optionalTextAt(tool['description'], `${path}.description`)
  const text = draft.texts.at('tools', index, 'input_schema')?.text
  const strict = strictOf(tool, path, schema, draft)
  return draft.from(path, {
    type: 'function',
    function: {
      name: shortName,
      ...(description === undefined ? {} : { description }),
      ...(text === undefined ? {} : { parameters: draft.from(`${path}.input_schema`, objectSchema(schema, text)) }),
      ...(strict === undefined ? {} : { strict }),
    },
  })
}

/** What would be run by the vendor, or by a client that knows the model's own tools. */
function refuseTool(tool: Members, path: string, draft: ChatRequestDraft): void {
  const { type, defer_loading: deferred, allowed_callers: callers } = tool
  if (!isAbsent(type) && type !== 'custom') {
    draft.verdicts.refuse(`${path}.type`, 'Describe it as a custom tool with an input_schema.')
  }
  if (deferred === true) draft.verdicts.refuse(`${path}.defer_loading`, 'Send only the tools that are needed.')
  if (isAbsent(callers)) return
  if (listAt(callers, `${path}.allowed_callers`).some((caller) => caller !== 'direct')) {
    draft.verdicts.refuse(`${path}.allowed_callers`, 'The model itself is the only caller there is.')
  }
}

function strictOf({ strict }: Members, path: string, schema: Members, draft: ChatRequestDraft): boolean | undefined {
  if (isAbsent(strict)) return undefined
  if (typeof strict !== 'boolean') throw wrongShape(`${path}.strict`, 'a boolean', strict)
  // Where the schema of a tool has no type, it gets this one.
  if (!strict || isClosedSchema({ type: 'object', ...schema })) return strict
  draft.verdicts.approximate(`${path}.strict`)
  return undefined
}

/** The members of each kind of `tool_choice`. */
export const TOOL_CHOICES = {
  auto: { type: 'read', disable_parallel_tool_use: 'read' },
  any: { type: 'read', disable_parallel_tool_use: 'read' },
  tool: { type: 'read', name: 'read', disable_parallel_tool_use: 'read' },
  none: { type: 'read' },
} as const satisfies Record<string, MemberTable>

type Choice = keyof typeof TOOL_CHOICES

const isChoice = (type: string): type is Choice => Object.hasOwn(TOOL_CHOICES, type)

const CHAT_CHOICES: Readonly<Record<Exclude<Choice, 'tool'>, string>> = { auto: 'auto', any: 'required', none: 'none' }

export function translateToolChoice(value: unknown, draft: ChatRequestDraft): void {
  const path = 'tool_choice'
  const choice = objectAt(value, path)
  const type = textAt(choice['type'], `${path}.type`)
  if (!isChoice(type)) draft.verdicts.refuse(`${path}.type`, 'Send auto, any, tool or none.')
  draft.checkMembers(choice, path, TOOL_CHOICES[type])
  const names = toolNamesOf(draft)
  if (names.length === 0) {
    // Chat upstreams refuse a choice without tools, even where it changes nothing.
    if (type === 'any' || type === 'tool') throw notThere(path, 'There are no tools to choose from.')
    return
  }
  draft.set('tool_choice', type === 'tool' ? named(choice, names, draft) : CHAT_CHOICES[type], path)
  if (type !== 'none' && choice['disable_parallel_tool_use'] === true) {
    draft.set('parallel_tool_calls', false, `${path}.disable_parallel_tool_use`)
  }
}

function named(choice: Members, names: readonly unknown[], draft: ChatRequestDraft): object {
  const name = textAt(choice['name'], 'tool_choice.name')
  if (!names.includes(name)) throw notThere('tool_choice.name', `There is no tool ${quoted(name)}.`)
  return { type: 'function', function: { name: draft.toolNames.shortened(name) } }
}

function toolNamesOf({ source }: ChatRequestDraft): readonly unknown[] {
  const tools: readonly unknown[] = Array.isArray(source['tools']) ? source['tools'] : []
  return tools.map((tool) => (isRecord(tool) ? tool['name'] : undefined))
}

const notThere = (param: string, message: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid value for '${param}': ${message}`, { param, code: 'invalid_value' })
