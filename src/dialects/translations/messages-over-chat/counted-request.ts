import { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf } from '../../../core/json-text.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { ResponsesFields } from '../../openai-responses.js'
import type { ChatFields } from '../../openai-wire.js'
import type { QuestionTranslation, Translation } from '../../translator.js'
import { withCallersPath } from '../caller-paths.js'
import { isAbsent, type Members, recordOr } from '../members.js'
import { inputTokensIn } from '../usage.js'

/** The question how many tokens a translated request has, for an upstream that counts those of responses. */
export function countedByResponses(translation: Translation<ChatFields>): QuestionTranslation<ResponsesFields> {
  const { model, messages, tools } = translation.request.fields
  const fields: ResponsesFields = {
    model,
    input: messages.flatMap(itemsOf),
    ...(isAbsent(tools) ? {} : { tools: tools.map(flatTool) }),
    ...settingsOf({ ...translation.request.fields }),
  }
  return {
    request: JsonBody.written(jsonTextOf(fields), fields),
    response: (answer) => JSON.stringify({ input_tokens: inputTokensIn(answer) }),
    error: (error) => translation.error(withCallersPath(error, chatPath)),
  }
}

/** What concerns the answer, and is put into words before the model reads it. */
function settingsOf(fields: Members): Members {
  const {
    response_format: format,
    reasoning_effort: effort,
    tool_choice: choice,
    parallel_tool_calls: parallelCalls,
  } = fields
  return {
    ...(isAbsent(format) ? {} : { text: { format: flatFormat(recordOr(format)) } }),
    ...(isAbsent(effort) ? {} : { reasoning: { effort } }),
    ...(isAbsent(choice) ? {} : { tool_choice: isRecord(choice) ? flatChoice(choice) : choice }),
    ...(isAbsent(parallelCalls) ? {} : { parallel_tool_calls: parallelCalls }),
  }
}

const flatChoice = ({ type, function: named }: Members): Members => ({ type, ...recordOr(named) })

const flatFormat = ({ type, json_schema: described }: Members): Members => ({ type, ...recordOr(described) })

/** Fields of responses that have another name in chat. */
const CHAT_NAMES = [
  ['text.format', 'response_format.json_schema'],
  ['reasoning.effort', 'reasoning_effort'],
] as const

function chatPath(steps: readonly string[]): string {
  const path = steps.join('.')
  const [name, chatName] = CHAT_NAMES.find(([known]) => `${path}.`.startsWith(`${known}.`)) ?? ['', '']
  return chatName + path.slice(name.length)
}

/** A chat message as items of a response's input; calls and results are items of their own. */
function itemsOf(message: unknown): readonly Members[] {
  if (!isRecord(message)) return []
  const { role, content, tool_calls: calls, tool_call_id: callId } = message
  const parts = Array.isArray(content) ? content.map((part) => partOf(part, role === 'assistant')) : content
  if (role === 'tool') return [{ type: 'function_call_output', call_id: callId, output: parts }]
  const said = isAbsent(content) ? [] : [{ role, content: parts }]
  return [...said, ...(Array.isArray(calls) ? calls.filter((call) => isRecord(call)).map(callItem) : [])]
}

function callItem({ id, function: called }: Members): Members {
  const { name, arguments: text } = recordOr(called)
  return { type: 'function_call', call_id: id, name, arguments: text }
}

/** Texts have one type in messages of the assistant and another in all others. */
function partOf(part: unknown, isOfAssistant: boolean): unknown {
  if (!isRecord(part)) return part
  const { type, text, image_url: image, file } = part
  if (type === 'image_url')
    return { type: 'input_image', detail: 'auto', image_url: isRecord(image) ? image['url'] : image }
  if (type === 'file') return { type: 'input_file', ...recordOr(file) }
  return isOfAssistant ? { type: 'output_text', text, annotations: [] } : { type: 'input_text', text }
}

const flatTool = (tool: unknown): unknown =>
  isRecord(tool) && isRecord(tool['function']) ? { type: 'function', strict: false, ...tool['function'] } : tool
