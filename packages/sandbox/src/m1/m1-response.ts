import { createHash, randomBytes } from 'node:crypto'
import {
  answerPieces,
  argumentsWord,
  estimateTokens,
  exampleOf,
  hasWord,
  numberWord,
  REFUSAL,
  TextRun,
  unfilteredWords,
} from '../server/generated-text.js'
import { fieldOf, isObject, type JsonObject, objectsOf, parseJsonObject, textOf } from '../server/json-value.js'
import { contentText, type M1Request, toolResultTexts } from './m1-request.js'
import { type M1Thought, newCallId, newThoughts, saidIndex } from './m1-thoughts.js'
import { isCallersTool } from './m1-tool-rules.js'

type M1Block =
  | { readonly type: 'thought'; readonly thought: M1Thought; readonly omitted: boolean }
  | { readonly type: 'text'; readonly run: TextRun }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly inputJson: string }
  | { readonly type: 'compaction'; readonly summary: string }

/** Decides what the model says, block by block: its thinking, then tool calls or words. */
export function decideBlocks(request: M1Request): readonly M1Block[] {
  if (fieldOf(request.body['compaction'], 'type') === 'summarize') {
    return [{ type: 'compaction', summary: `A conversation of ${request.messages.length} messages.` }]
  }
  if (request.maxTokens === 0) return []
  const thoughts = thoughtsOf(request)
  const thinking = thoughts.map((thought): M1Block => {
    return { type: 'thought', thought, omitted: request.thinking?.display === 'omitted' }
  })
  if (hasWord(request.callerText, 'refuse')) return thinking
  const calls = toolCalls(request, thoughts)
  if (calls.length > 0) return [...thinking, ...calls]
  const pieces = answerPieces(request.callerText, words(request))
  const { maxTokens, stopSequences, callerText } = request
  const run = new TextRun(pieces, maxTokens, stopSequences, unfilteredWords(callerText))
  return [...thinking, { type: 'text', run }]
}

/** Before each answer, also within a tool loop unless a word says otherwise. */
function thoughtsOf({ thinking, saidText, messages }: M1Request): readonly M1Thought[] {
  const isSkipped = hasWord(saidText, 'skip') && saidIndex(messages) < messages.length - 1
  return thinking === undefined || isSkipped ? [] : newThoughts(messages, hasWord(saidText, 'redact'))
}

function words(request: M1Request): string {
  const last = request.messages.at(-1)
  // The second is the older place, which a beta header opens.
  const format = fieldOf(request.body['output_config'], 'format') ?? request.body['output_format']
  if (fieldOf(format, 'type') === 'json_schema') return JSON.stringify(exampleOf(fieldOf(format, 'schema')))
  const results = toolResultTexts(last)
  if (results.length > 0) return `The tools answered: ${results.join('; ')}`
  // A final assistant message is a prefill: the answer goes on from there.
  if (last?.['role'] === 'assistant') return ` and so on, after ${contentText(last['content']).length} characters.`
  return request.callerText === '' ? 'You said nothing.' : `You said: ${request.callerText}`
}

function toolCalls(request: M1Request, thoughts: readonly M1Thought[]): readonly M1Block[] {
  const choice = request.body['tool_choice']
  if (fieldOf(choice, 'type') === 'none' || request.messages.at(-1)?.['role'] !== 'user') return []
  if (answeredSteps(request) >= (numberWord(request.saidText, 'steps') ?? 1)) return []
  return chosenTools(request, choice).map((tool, index) => {
    const verbatim = index === 0 ? argumentsWord(request.saidText) : undefined
    const inputJson = verbatim ?? JSON.stringify(exampleOf(tool['input_schema']))
    return { type: 'tool_use', id: newCallId(thoughts), name: textOf(tool['name']), inputJson }
  })
}

/** How often results of tools have come since the user spoke; those that came with the text are of the turn before, and end it. */
const answeredSteps = ({ messages }: M1Request): number =>
  messages.slice(saidIndex(messages)).filter((message) => toolResultTexts(message).length > 0).length

/** The tools the caller's text names, or the first one; only one when a tool is forced or parallel use is off. */
function chosenTools(request: M1Request, choice: unknown): readonly JsonObject[] {
  const tools = objectsOf(request.body['tools']).filter(isCallersTool)
  if (fieldOf(choice, 'type') === 'tool') return tools.filter((tool) => tool['name'] === fieldOf(choice, 'name'))
  const named = tools.filter((tool) => request.saidText.includes(textOf(tool['name'])))
  const chosen = named.length > 0 ? named : tools.slice(0, 1)
  return fieldOf(choice, 'disable_parallel_tool_use') === true ? chosen.slice(0, 1) : chosen
}

export interface StopFacts {
  readonly stop_reason: string
  readonly stop_sequence: string | null
  /** Of a refusal. */
  readonly stop_details?: { readonly type: 'refusal'; readonly category: null; readonly explanation: string | null }
}

/** Why the answer ended; valid when all its blocks were written. */
function stopOf(blocks: readonly M1Block[], { callerText }: M1Request): StopFacts {
  const last = blocks.at(-1)
  if (hasWord(callerText, 'refuse')) return refused(REFUSAL)
  if (last === undefined) return { stop_reason: 'max_tokens', stop_sequence: null }
  if (last.type === 'compaction') return { stop_reason: 'compaction', stop_sequence: null }
  if (last.type === 'tool_use') return { stop_reason: 'tool_use', stop_sequence: null }
  const run = last.type === 'text' ? last.run : undefined
  if (run?.ended === 'filter') return refused(null)
  if (run?.ended === 'limit') return { stop_reason: 'max_tokens', stop_sequence: null }
  if (run?.ended === 'stop') return { stop_reason: 'stop_sequence', stop_sequence: run.stoppedBy ?? null }
  return { stop_reason: 'end_turn', stop_sequence: null }
}

const refused = (explanation: string | null): StopFacts => ({
  stop_reason: 'refusal',
  stop_sequence: null,
  stop_details: { type: 'refusal', category: null, explanation },
})

interface InputUsage {
  readonly input_tokens: number
  readonly cache_creation_input_tokens: number
  readonly cache_read_input_tokens: number
  readonly cache_creation: { readonly ephemeral_5m_input_tokens: number; readonly ephemeral_1h_input_tokens: number }
}

const TOKENS_PER_MESSAGE = 4

/** An estimate over everything that is sent: system, tools and messages. */
export function countTokens(body: JsonObject): number {
  const messages = objectsOf(body['messages'])
  const contents = [body['system'], body['tools'], ...messages.map((message) => message['content'])]
  return contents.reduce<number>((sum, content) => sum + tokensOf(content), messages.length * TOKENS_PER_MESSAGE)
}

/** Of content, a block or a tool: of what it says to the model, and not of the JSON around that. */
function tokensOf(value: unknown): number {
  if (typeof value === 'string') return estimateTokens(value)
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + tokensOf(item), 0)
  if (!isObject(value)) return 0
  const { type, text, name, description, input, input_schema: schema, content } = value
  if (type === 'text') return tokensOf(text)
  if (type === 'tool_result') return tokensOf(content)
  if (type === 'tool_use') return tokensOf([name, JSON.stringify(input)])
  if (schema !== undefined) return tokensOf([name, description, JSON.stringify(schema)])
  return tokensOf(JSON.stringify(value))
}

/**
 * Splits the input into plain and cached tokens. Marked blocks are written to the cache when `seen` does not know them
 * and read from it afterwards. `input_tokens` excludes both.
 */
export function inputUsage(body: JsonObject, seen: Set<string>): InputUsage {
  const carriers = [
    ...objectsOf(body['tools']),
    ...objectsOf(body['system']),
    ...objectsOf(body['messages']).flatMap((message) => objectsOf(message['content'])),
  ].filter((block) => fieldOf(block['cache_control'], 'type') === 'ephemeral')
  const written = { '5m': 0, '1h': 0 }
  let read = 0
  for (const block of carriers) {
    const tokens = tokensOf(block)
    const key = createHash('sha256').update(JSON.stringify(block)).digest('base64')
    if (seen.has(key)) read += tokens
    else written[fieldOf(block['cache_control'], 'ttl') === '1h' ? '1h' : '5m'] += tokens
    seen.add(key)
  }
  const creation = written['5m'] + written['1h']
  return {
    input_tokens: Math.max(1, countTokens(body) - creation - read),
    cache_creation_input_tokens: creation,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: written['5m'], ephemeral_1h_input_tokens: written['1h'] },
  }
}

export interface OutputUsage {
  readonly output_tokens: number
  /** Of these, the reasoning tokens of a model that thinks. */
  readonly output_tokens_details?: { readonly thinking_tokens: number }
}

/** Output tokens of all blocks, thinking included, and of why the model refuses; valid when they were written. */
function outputUsage(blocks: readonly M1Block[], { callerText }: M1Request): OutputUsage {
  const thinking = blocks.filter((block) => block.type === 'thought')
  const details = { output_tokens_details: { thinking_tokens: tokensOfBlocks(thinking) } }
  const explained = hasWord(callerText, 'refuse') ? estimateTokens(REFUSAL) : 0
  return { output_tokens: tokensOfBlocks(blocks) + explained, ...(thinking.length === 0 ? {} : details) }
}

function tokensOfBlocks(blocks: readonly M1Block[]): number {
  return blocks.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.run.count
    if (block.type === 'compaction') return sum + estimateTokens(block.summary)
    return sum + estimateTokens(block.type === 'thought' ? thoughtText(block.thought) : block.inputJson)
  }, 0)
}

const thoughtText = (thought: M1Thought): string => (thought.type === 'thinking' ? thought.thinking : thought.data)

export function newMessageId(): string {
  return `msg_01${randomBytes(11).toString('hex')}`
}

/** The complete answer of section 4 of the messages notes. */
export function m1Message(request: M1Request, id: string, blocks: readonly M1Block[], input: InputUsage): object {
  const content = wholeContent(blocks)
  return {
    model: request.model.resolved,
    id,
    type: 'message',
    role: 'assistant',
    content,
    ...stopOf(blocks, request),
    ...appliedEdits(request.body),
    usage: { ...input, ...outputUsage(blocks, request), service_tier: 'standard', inference_geo: 'not_available' },
  }
}

/** The content of a complete answer; of a streamed one it is valid when all was written. */
export function wholeContent(blocks: readonly M1Block[]): readonly object[] {
  return blocks.map(wholeBlock)
}

/** No conversation here grows so long that anything would be cleared. */
function appliedEdits(body: JsonObject): object {
  return isObject(body['context_management']) ? { context_management: { applied_edits: [] } } : {}
}

function wholeBlock(block: M1Block): object {
  switch (block.type) {
    case 'thought':
      return block.thought.type === 'thinking' && block.omitted ? { ...block.thought, thinking: '' } : block.thought
    case 'text':
      return { type: 'text', text: block.run.join() }
    case 'tool_use': {
      // `#args=` may have any value; a complete answer allows only an object.
      const input = parseJsonObject(Buffer.from(block.inputJson)) ?? {}
      return { type: 'tool_use', id: block.id, name: block.name, input }
    }
    case 'compaction':
      return { type: 'compaction', content: block.summary, encrypted_content: null }
  }
}

/** Blanks before the closing brace, as some recorded events carry them. */
const PADDING_EVERY = 3
const THINKING_PIECE_CHARACTERS = 16

/** The named events of section 5 of the messages notes, lazily; there is no `[DONE]`. */
export function* m1Events(
  request: M1Request,
  id: string,
  blocks: readonly M1Block[],
  input: InputUsage,
): Generator<string> {
  const message = {
    id,
    type: 'message',
    role: 'assistant',
    model: request.model.resolved,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...input, output_tokens: 1, service_tier: 'standard' },
  }
  yield event('message_start', { message })
  for (const [index, block] of blocks.entries()) {
    yield event('content_block_start', { index, content_block: opening(block) })
    if (index === 0) yield 'event: ping\ndata: {"type": "ping"}\n\n'
    let number = 0
    for (const delta of deltas(block)) {
      number += 1
      yield event('content_block_delta', { index, delta }, number % PADDING_EVERY === 0 ? number % 12 : 0)
    }
    yield event('content_block_stop', { index })
  }
  // Totals, not increments.
  const usage = {
    input_tokens: input.input_tokens,
    cache_creation_input_tokens: input.cache_creation_input_tokens,
    cache_read_input_tokens: input.cache_read_input_tokens,
    ...outputUsage(blocks, request),
  }
  yield event('message_delta', { delta: stopOf(blocks, request), usage, ...appliedEdits(request.body) })
  yield event('message_stop', {})
}

function event(type: string, fields: object, blanks = 0): string {
  const data = JSON.stringify({ type, ...fields })
  return `event: ${type}\ndata: ${data.slice(0, -1)}${' '.repeat(blanks)}}\n\n`
}

function opening(block: M1Block): object {
  switch (block.type) {
    case 'thought':
      // What is redacted comes whole.
      return block.thought.type === 'thinking' ? { type: 'thinking', thinking: '', signature: '' } : block.thought
    case 'text':
      return { type: 'text', text: '' }
    case 'tool_use':
      return { type: 'tool_use', id: block.id, name: block.name, input: {} }
    case 'compaction':
      return { type: 'compaction', content: null, encrypted_content: null }
  }
}

function* thinkingDeltas(
  { thinking, signature }: Extract<M1Thought, { type: 'thinking' }>,
  isOmitted: boolean,
): Generator<object> {
  for (let start = 0; start < thinking.length && !isOmitted; start += THINKING_PIECE_CHARACTERS) {
    yield { type: 'thinking_delta', thinking: thinking.slice(start, start + THINKING_PIECE_CHARACTERS) }
  }
  yield { type: 'signature_delta', signature }
}

function* deltas(block: M1Block): Generator<object> {
  switch (block.type) {
    case 'thought':
      if (block.thought.type === 'thinking') yield* thinkingDeltas(block.thought, block.omitted)
      break
    case 'text':
      for (const text of block.run) yield { type: 'text_delta', text }
      break
    case 'tool_use': {
      const middle = Math.floor(block.inputJson.length / 2)
      yield { type: 'input_json_delta', partial_json: '' }
      yield { type: 'input_json_delta', partial_json: block.inputJson.slice(0, middle) }
      yield { type: 'input_json_delta', partial_json: block.inputJson.slice(middle) }
      break
    }
    case 'compaction':
      yield { type: 'compaction_delta', content: block.summary, encrypted_content: null }
  }
}
