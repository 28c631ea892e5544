import type { Members } from '../members.js'
import type { NamedTool, Tool, ToolChoice } from '../responses/tools.js'
import { NO_INPUT, objectSchema, TEXT_INPUT } from '../tool-forms.js'
import type { MessagesDraft } from './messages-draft.js'

/** Sets `tools` and `tool_choice`. */
export function setTools(draft: MessagesDraft): void {
  const { toolChoice: choice, tools, paths, facts, verdicts, isForced } = draft
  if (isForced && !facts.forcedToolChoice) verdicts.refuse('tool_choice', 'The model can only be let choose: auto.')
  const allowed = choice?.kind === 'allowed' ? allowedTools(choice, draft) : tools
  // Without any of them allowed none may be called, and they stay: calls of them may stand in the conversation.
  const sent = allowed.length === 0 ? tools : allowed
  if (sent.length > 0) draft.set('tools', sent.map(upstreamTool(draft)), 'tools')
  sent.forEach(({ path }, index) => {
    paths.set(`tools.${index}`, path)
    paths.set(`tools.${index}.name`, `${path}.name`)
    paths.set(`tools.${index}.input_schema`, `${path}.parameters`)
  })
  const form = allowed.length === 0 && tools.length > 0 ? { type: 'none' } : choiceOf(choice)
  // Without tools there is nothing to choose from, and nothing lost.
  if (tools.length === 0 && !isForced) return
  const isSerial = draft.isSerial && form?.['type'] !== 'none'
  const serial = isSerial ? { disable_parallel_tool_use: true } : {}
  if (form !== undefined || isSerial)
    draft.set('tool_choice', { ...(form ?? { type: 'auto' }), ...serial }, 'tool_choice')
}

/** Only these are sent, which cuts the upstream's prompt cache at the tools. */
function allowedTools(choice: Extract<ToolChoice, { kind: 'allowed' }>, draft: MessagesDraft): readonly Tool[] {
  draft.verdicts.approximate('tool_choice')
  const keyOf = ({ kind, name }: NamedTool): string => `${kind} ${name}`
  const allowed = new Set(choice.tools.map(keyOf))
  return draft.tools.filter((tool) => allowed.has(keyOf(tool)))
}

function choiceOf(choice: ToolChoice | undefined): Members | undefined {
  if (choice === undefined) return undefined
  if (choice.kind === 'named') return { type: 'tool', name: choice.tool.name }
  const isRequired = choice.kind === 'allowed' ? choice.isRequired : choice.kind === 'required'
  if (isRequired) return { type: 'any' }
  return { type: choice.kind === 'none' ? 'none' : 'auto' }
}

const upstreamTool =
  ({ verdicts }: MessagesDraft) =>
  (tool: Tool): object => {
    const { name, description, path } = tool
    if (tool.kind === 'function') {
      const { parameters, strict } = tool
      const input_schema = parameters === undefined ? NO_INPUT : objectSchema(parameters.schema, parameters.spelled)
      return { name, description, input_schema, ...(strict === true ? { strict } : {}) }
    }
    if (tool.grammar !== undefined) verdicts.refuse(`${path}.format`, 'Send a custom tool without a grammar.')
    return { name, description, input_schema: TEXT_INPUT }
  }
