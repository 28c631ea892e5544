import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { wrongTag } from './m1-beta-rules.js'
import { reject } from './m1-errors.js'
import type { M1Model } from './m1-models.js'

interface ToolKind {
  /** Its type, whose date tells its versions apart. */
  readonly type: RegExp
  /** As a refusal names it. */
  readonly tag: string
  /** The only name the tool may have; undefined for a toolset, which has none. */
  readonly name: string | undefined
  /** Needed in `anthropic-beta`. */
  readonly beta?: RegExp
}

/** Tools that the upstream defines itself. Versions yet unknown are taken for good. */
const TOOL_KINDS: readonly ToolKind[] = [
  { type: /^bash_20\d{6}$/, tag: 'bash_20250124', name: 'bash' },
  { type: /^code_execution_20\d{6}$/, tag: 'code_execution_20260521', name: 'code_execution' },
  { type: /^memory_20\d{6}$/, tag: 'memory_20250818', name: 'memory' },
  { type: /^text_editor_202(4\d{4}|50124)$/, tag: 'text_editor_20250124', name: 'str_replace_editor' },
  { type: /^text_editor_20\d{6}$/, tag: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
  { type: /^web_fetch_20\d{6}$/, tag: 'web_fetch_20260318', name: 'web_fetch' },
  { type: /^web_search_20\d{6}$/, tag: 'web_search_20260318', name: 'web_search' },
  { type: /^tool_search_tool_bm25(_20\d{6})?$/, tag: 'tool_search_tool_bm25', name: 'tool_search_tool_bm25' },
  { type: /^tool_search_tool_regex(_20\d{6})?$/, tag: 'tool_search_tool_regex', name: 'tool_search_tool_regex' },
  { type: /^browser_toolset_20\d{6}$/, tag: 'browser_toolset_20260801', name: undefined },
  { type: /^computer_toolset_20\d{6}$/, tag: 'computer_toolset_20260801', name: undefined },
  { type: /^advisor_20\d{6}$/, tag: 'advisor_20260301', name: 'advisor', beta: /^advisor-tool-/ },
  { type: /^computer_20\d{6}$/, tag: 'computer_20251124', name: 'computer', beta: /^computer-use-/ },
  { type: /^mcp_toolset$/, tag: 'mcp_toolset', name: undefined, beta: /^mcp-client-202(5-11|6)/ },
]

/** Whether a tool is the caller's own: described by it, and run by it. */
export function isCallersTool(tool: JsonObject): boolean {
  return (tool['type'] ?? 'custom') === 'custom'
}

/** Judges `tools` and `tool_choice` (section 3.3 of the messages notes). Throws M1Rejection. */
export function judgeTools(body: JsonObject, model: M1Model, betas: readonly string[]): void {
  listOf(body['tools']).forEach((tool, index) => {
    judgeTool(tool, `tools.${index}`, betas)
  })
  const tools = objectsOf(body['tools'])
  judgeToolsets(tools, body)
  const names = tools.filter((tool) => tool['name'] !== undefined).map((tool) => textOf(tool['name']))
  if (new Set(names).size < names.length) reject('tools: Tool names must be unique.')
  if (body['tool_choice'] !== undefined) judgeToolChoice(body['tool_choice'], tools.length, names, model)
}

function judgeTool(tool: unknown, path: string, betas: readonly string[]): void {
  if (!isObject(tool)) reject(`${path}: Input should be a valid dictionary`)
  if (!isCallersTool(tool)) {
    judgeOwnTool(tool, path, betas)
    return
  }
  if (tool['name'] === undefined) reject(`${path}.custom.name: Field required`)
  if (tool['input_schema'] === undefined) reject(`${path}.custom.input_schema: Field required`)
  if (fieldOf(tool['input_schema'], 'type') !== 'object')
    reject(`${path}.custom.input_schema.type: Input should be 'object'`)
  if (/^[a-zA-Z0-9_-]{1,128}$/.test(textOf(tool['name']))) return
  reject(`${path}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
}

function judgeOwnTool(tool: JsonObject, path: string, betas: readonly string[]): void {
  const type = textOf(tool['type'])
  const usable = TOOL_KINDS.filter(({ beta }) => beta === undefined || betas.some((name) => beta.test(name)))
  const kind = usable.find((candidate) => candidate.type.test(type))
  if (kind === undefined) {
    const tags = [...usable.map(({ tag }) => tag), 'custom'].sort()
    wrongTag(path, type, tags)
  }
  if (kind.name === undefined) {
    if (tool['name'] !== undefined) reject(`${path}.${type}.name: Extra inputs are not permitted`)
  } else if (tool['name'] === undefined) reject(`${path}.${type}.name: Field required`)
  else if (tool['name'] !== kind.name) reject(`${path}.${type}.name: Input should be '${kind.name}'`)
}

/** A toolset stands for the tools of a server that the request names. */
function judgeToolsets(tools: readonly JsonObject[], body: JsonObject): void {
  const servers = objectsOf(body['mcp_servers']).map((server) => textOf(server['name']))
  tools.forEach((tool, index) => {
    if (tool['type'] !== 'mcp_toolset') return
    const server = tool['mcp_server_name']
    if (server === undefined) reject(`tools.${index}.mcp_toolset.mcp_server_name: Field required`)
    if (servers.includes(textOf(server))) return
    reject(`tools.${index}: MCP server '${textOf(server)}' not found in mcp_servers`)
  })
}

const CHOICES = ['auto', 'any', 'tool', 'none']

function judgeToolChoice(choice: unknown, toolCount: number, names: readonly string[], model: M1Model): void {
  const type = textOf(fieldOf(choice, 'type'))
  if (!CHOICES.includes(type)) wrongTag('tool_choice', type, CHOICES)
  if (toolCount === 0 && type !== 'none') reject('tool_choice may only be specified while providing tools.')
  const name = textOf(fieldOf(choice, 'name'))
  if (type === 'tool' && !names.includes(name)) reject(`Tool '${name}' not found in provided tools`)
  if (type === 'none' && fieldOf(choice, 'disable_parallel_tool_use') !== undefined) {
    reject('tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted')
  }
  if ((type === 'any' || type === 'tool') && !model.forcedTools) {
    reject(`tool_choice.type: '${type}' forces tool use, which is not supported for this model. Use 'auto' or 'none'.`)
  }
}
