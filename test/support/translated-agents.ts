import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import type { TestGateway } from './gateway.js'
import type { MakeAnthropic } from './m1-gateway.js'
import { chatHelpers, type MakeClient } from './sdk-clients.js'
import { MESSAGES_MODEL } from './translation-gateway.js'

const NAMES = ['alpha', 'beta', 'gamma', 'delta']
const SCHEMA = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'] }
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const DATA_URL = `data:image/png;base64,${PIXEL}`

/** What the user asks for in a round: one to four tools. */
const taskOf = (round: number, words = ''): string =>
  `Use ${NAMES.slice(0, callsOf(round)).join(' and ')} ${words}`.trim()
export const callsOf = (round: number): number => 1 + (round % NAMES.length)
const isMarked = (round: number): boolean => round % 3 === 0

/** What the model said, thought (or a seal of it) and called in one turn. */
interface Turn {
  readonly text: string
  readonly thoughts: string
  readonly calls: number
}

/**
 * A conversation of twenty turns: calls of tools, alone and in parallel, with pictures and errors in their results, thinking, and marks
 * for the prompt cache.
 */
export interface Agent {
  /** Asks the model, which calls tools. */
  ask(round: number): Promise<Turn>
  /** Sends the results; the model speaks, or calls tools again. */
  answer(round: number): Promise<Turn>
}

export interface Manner {
  readonly gateway: Pick<TestGateway, 'url'>
  readonly model: string
  /** The client sends answers back as they came; others send what they know. */
  readonly keeps: boolean
  readonly isStreamed: boolean
  /** Of the simulator, at the end of each task. */
  readonly words?: string
}

export function chatAgent(make: MakeClient, { gateway, model, keeps, isStreamed, words }: Manner): Agent {
  const client = make(gateway)
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'system', content: 'Be brief.' }]
  const tools = NAMES.map((name) => ({ type: 'function' as const, function: { name, parameters: SCHEMA } }))
  let calls: readonly OpenAI.ChatCompletionMessageToolCall[] = []
  const next = async (): Promise<Turn> => {
    const request = { model, messages, tools, max_completion_tokens: 3000, reasoning_effort: 'low' as const }
    const completion = isStreamed
      ? await chatHelpers(client).stream(request).finalChatCompletion()
      : await client.chat.completions.create(request)
    const [choice] = completion.choices
    if (choice === undefined) throw new Error('no choice')
    const { content, tool_calls: made = [] } = choice.message
    const known = { role: 'assistant' as const, content, ...(made.length === 0 ? {} : { tool_calls: made }) }
    messages.push(keeps ? choice.message : known)
    calls = made
    const { reasoning_content: thoughts = '' } = choice.message as { readonly reasoning_content?: string }
    return { text: content ?? '', thoughts, calls: calls.length }
  }
  return {
    ask: async (round) => {
      const text = { type: 'text' as const, text: taskOf(round, words), ...(isMarked(round) ? CHAT_MARK : {}) }
      messages.push({ role: 'user', content: [...(round % 4 === 1 ? [PICTURE] : []), text] })
      return await next()
    },
    answer: async (round) => {
      messages.push(...calls.map(({ id }, index) => chatResult(id, index, { model, round })))
      return await next()
    },
  }
}

const PICTURE = { type: 'image_url' as const, image_url: { url: DATA_URL } }
/** Known to upstreams alone that take it. */
const CHAT_MARK = { prompt_cache_breakpoint: { mode: 'explicit' as const } }

function chatResult(
  id: string,
  index: number,
  { model, round }: { readonly model: string; readonly round: number },
): OpenAI.ChatCompletionToolMessageParam {
  const result = { role: 'tool' as const, tool_call_id: id }
  if (index === 1) return { ...result, content: 'Error: It failed' }
  if (index !== 2 || model !== MESSAGES_MODEL) return { ...result, content: `result of round ${round}` }
  // Chat itself has no pictures there; the gateway takes them where messages have.
  const content: readonly object[] = [{ type: 'text', text: 'a picture' }, PICTURE]
  return { ...result, content: content as OpenAI.ChatCompletionContentPartText[] }
}

export function messagesAgent(make: MakeAnthropic, { gateway, model, keeps, isStreamed, words }: Manner): Agent {
  const client = make(gateway)
  const messages: Anthropic.MessageParam[] = []
  const tools = NAMES.map((name) => ({ name, input_schema: SCHEMA as Anthropic.Tool.InputSchema }))
  let calls: readonly Anthropic.ToolUseBlock[] = []
  const next = async (): Promise<Turn> => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1024 }
    const request = { model, messages, tools, system: 'Be brief.', max_tokens: 3000, thinking }
    const message = isStreamed
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request)
    const { content } = message
    calls = content.filter((block) => block.type === 'tool_use')
    messages.push({ role: 'assistant', content: content.filter((block) => keeps || block.type !== 'thinking') })
    return {
      text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      thoughts: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
      calls: calls.length,
    }
  }
  return {
    ask: async (round) => {
      const mark = isMarked(round) ? { cache_control: { type: 'ephemeral' as const } } : {}
      messages.push({ role: 'user', content: [{ type: 'text', text: taskOf(round, words), ...mark }] })
      return await next()
    },
    answer: async (round) => {
      messages.push({ role: 'user', content: calls.map(({ id }, index) => messagesResult(id, index, round)) })
      return await next()
    },
  }
}

function messagesResult(id: string, index: number, round: number): Anthropic.ToolResultBlockParam {
  const result = { type: 'tool_result' as const, tool_use_id: id }
  if (index === 1) return { ...result, is_error: true, content: 'It failed' }
  if (index !== 2) return { ...result, content: `result of round ${round}` }
  const source = { type: 'base64' as const, media_type: 'image/png' as const, data: PIXEL }
  return {
    ...result,
    content: [
      { type: 'text', text: 'a picture' },
      { type: 'image', source },
    ],
  }
}

export function responsesAgent(make: MakeClient, { gateway, model, keeps, isStreamed, words }: Manner): Agent {
  const client = make(gateway)
  const input: OpenAI.Responses.ResponseInputItem[] = []
  const tools = NAMES.map((name) => ({ type: 'function' as const, name, parameters: SCHEMA, strict: false }))
  let calls: readonly OpenAI.Responses.ResponseFunctionToolCall[] = []
  const next = async (): Promise<Turn> => {
    const request = {
      model,
      input,
      tools,
      instructions: 'Be brief.',
      store: false,
      max_output_tokens: 3000,
      reasoning: { effort: 'low' as const, summary: 'auto' as const },
      // Some clients ask for what they send back, and some send back what they get.
      ...(isStreamed ? { include: ['reasoning.encrypted_content' as const] } : {}),
    }
    const { output } = isStreamed
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request)
    calls = output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
    // What a client pushes back is what it got, whatever the types say of single items.
    const items = output as readonly object[] as readonly OpenAI.Responses.ResponseInputItem[]
    input.push(...items.filter((item) => keeps || item.type !== 'reasoning'))
    const said = output.flatMap((item) => (item.type === 'message' ? item.content : []))
    const thought = output.flatMap((item) => (item.type === 'reasoning' ? item.summary : []))
    return {
      text: said.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
      thoughts: thought.map(({ text }) => text).join(''),
      calls: calls.length,
    }
  }
  return {
    ask: async (round) => {
      const text = { type: 'input_text' as const, text: taskOf(round, words), ...(isMarked(round) ? CHAT_MARK : {}) }
      input.push({ role: 'user', content: [text] })
      return await next()
    },
    answer: async (round) => {
      input.push(...calls.map(({ call_id }, index) => responsesResult(call_id, index, round)))
      return await next()
    },
  }
}

function responsesResult(
  call_id: string,
  index: number,
  round: number,
): OpenAI.Responses.ResponseInputItem.FunctionCallOutput {
  const result = { type: 'function_call_output' as const, call_id }
  if (index === 1) return { ...result, output: 'Error: It failed' }
  if (index !== 2) return { ...result, output: `result of round ${round}` }
  return {
    ...result,
    output: [
      { type: 'input_text', text: 'a picture' },
      { type: 'input_image', image_url: DATA_URL, detail: 'auto' },
    ],
  }
}
