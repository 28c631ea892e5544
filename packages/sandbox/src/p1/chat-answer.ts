import { randomBytes } from 'node:crypto'
import { TextRun } from '../server/generated-text.js'
import { fieldOf, isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { answerPieces, magicArguments } from '../server/magic-text.js'
import { exampleOf } from '../server/schema-example.js'
import { type ChatRequest, contentText } from './chat-request.js'
import { wordLimit } from './token-budget.js'
import { toolName } from './tool-rules.js'

export interface ToolCall {
  readonly id: string
  readonly type: 'function' | 'custom'
  readonly name: string
  /** JSON text for a function, free text for a custom tool. */
  readonly input: string
}

export type ChatAnswer =
  | { readonly kind: 'text'; readonly newRun: () => TextRun }
  | { readonly kind: 'tools'; readonly calls: readonly ToolCall[]; readonly finishReason: 'tool_calls' | 'stop' }

/** Decides what the model says: tool calls right after a user message that offers tools, otherwise words. */
export function decideAnswer(request: ChatRequest): ChatAnswer {
  const calls = toolCalls(request)
  if (calls.length > 0) {
    // A forced function has been seen to end with `stop` although it called (section 4 of the chat notes).
    const forced = fieldOf(request.body['tool_choice'], 'type') === 'function'
    return { kind: 'tools', calls, finishReason: forced ? 'stop' : 'tool_calls' }
  }
  const limit = wordLimit(request)
  // Pieces of an answer are made as they are taken: each choice has its own.
  const pieces = (): Iterable<string> => answerPieces(request.callerText, words(request))
  return { kind: 'text', newRun: () => new TextRun(pieces(), limit, stops(request.body)) }
}

function stops(body: JsonObject): readonly string[] {
  const stop = body['stop']
  return (typeof stop === 'string' ? [stop] : listOf(stop).map(textOf)).filter((text) => text !== '')
}

function words(request: ChatRequest): string {
  const format = request.body['response_format']
  const plain = plainWords(request)
  if (fieldOf(format, 'type') === 'json_object') return JSON.stringify({ answer: plain })
  if (fieldOf(format, 'type') !== 'json_schema') return plain
  return JSON.stringify(exampleOf(fieldOf(fieldOf(format, 'json_schema'), 'schema')))
}

function plainWords(request: ChatRequest): string {
  if (request.messages.at(-1)?.['role'] === 'tool') {
    const lastCaller = request.messages.findLastIndex((message) => message['role'] === 'assistant')
    const results = request.messages.slice(lastCaller + 1).map((message) => contentText(message['content']))
    return `The tools answered: ${results.join('; ')}`
  }
  const said = request.callerText === '' ? 'You said nothing.' : `You said: ${request.callerText}`
  const last = request.messages.findLast((message) => message['role'] === 'user')
  const heard = objectsOf(last?.['content']).filter((part) => part['type'] === 'input_audio')
  return [said, ...heard.map((part) => heardAudio(part['input_audio']))].join(' ')
}

function heardAudio(audio: unknown): string {
  const bytes = Buffer.from(textOf(fieldOf(audio, 'data')), 'base64').length
  return `I heard ${textOf(fieldOf(audio, 'format'))} audio of ${bytes} bytes.`
}

function toolCalls(request: ChatRequest): readonly ToolCall[] {
  const choice = request.body['tool_choice']
  const last = request.messages.at(-1)?.['role']
  if (choice === 'none' || last === 'tool' || last === 'assistant') return []
  return chosenTools(request, choice).map((tool, index) => ({
    id: `call_${randomBytes(12).toString('hex')}`,
    type: tool['type'] === 'custom' ? 'custom' : 'function',
    name: toolName(tool),
    input: toolInput(tool, index === 0 ? magicArguments(request.callerText) : undefined),
  }))
}

/** The tools the caller's text names, or the first one; only one when parallel calls are off or a tool is forced. */
function chosenTools(request: ChatRequest, choice: unknown): readonly JsonObject[] {
  const tools = objectsOf(request.body['tools'])
  if (isObject(choice) && choice['type'] !== 'allowed_tools') {
    return tools.filter((tool) => toolName(tool) === toolName(choice))
  }
  const allowed = objectsOf(fieldOf(fieldOf(choice, 'allowed_tools'), 'tools')).map(toolName)
  const usable = allowed.length > 0 ? tools.filter((tool) => allowed.includes(toolName(tool))) : tools
  const named = usable.filter((tool) => request.callerText.includes(toolName(tool)))
  const chosen = named.length > 0 ? named : usable.slice(0, 1)
  return request.body['parallel_tool_calls'] === false ? chosen.slice(0, 1) : chosen
}

function toolInput(tool: JsonObject, verbatim: string | undefined): string {
  if (verbatim !== undefined) return verbatim
  if (tool['type'] === 'custom') return `example ${toolName(tool)}`
  const schema = fieldOf(tool['function'], 'parameters')
  return JSON.stringify(schema === undefined ? {} : exampleOf(schema))
}
