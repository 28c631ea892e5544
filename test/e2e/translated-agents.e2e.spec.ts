import type Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, it } from '@jest/globals'
import type OpenAI from 'openai'
import { shareLab } from '../support/lab-lifetime.js'
import { anthropic0 } from '../support/m1-gateway.js'
import { openai6 } from '../support/sdk-clients.js'
import { MESSAGES_MODEL, startTranslationLab, type TranslationLab } from '../support/translation-gateway.js'

/** A chat model that thinks. */
const CHAT_MODEL = 'gpt-5-mini'
const ROUNDS = 10
const NAMES = ['alpha', 'beta', 'gamma', 'delta']
const SCHEMA = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'] }
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** What the user asks for in a round: one to four tools. */
const taskOf = (round: number): string => `Use ${NAMES.slice(0, 1 + (round % NAMES.length)).join(' and ')}`
const callsOf = (round: number): number => 1 + (round % NAMES.length)

let lab: TranslationLab
shareLab(async () => {
  const rows = [
    { id: CHAT_MODEL, class: 'chat', providers: ['p1'], dialects: ['chat'], facts: { maxOutputTokens: 4000 } },
  ]
  return (lab = await startTranslationLab({ models: rows }))
})

/**
 * A conversation of twenty turns: calls of tools, alone and in parallel, with pictures and errors in their results, thinking, and marks
 * for the prompt cache. `keeps`: the client sends answers back as they came; others send what they know.
 */
interface Agent {
  /** Asks the model; returns how many tools it calls. */
  ask(round: number): Promise<number>
  /** Sends the results; the model speaks. */
  answer(round: number): Promise<string>
}

function chatAgent(model: string, keeps: boolean, isStreamed: boolean): Agent {
  const client = openai6(lab.gateway)
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'system', content: 'Be brief.' }]
  const tools = NAMES.map((name) => ({ type: 'function' as const, function: { name, parameters: SCHEMA } }))
  let calls: readonly OpenAI.ChatCompletionMessageToolCall[] = []
  const next = async (): Promise<OpenAI.ChatCompletionMessage> => {
    const request = { model, messages, tools, max_completion_tokens: 3000, reasoning_effort: 'low' as const }
    const completion = isStreamed
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request)
    const [choice] = completion.choices
    if (choice === undefined) throw new Error('no choice')
    const { content, tool_calls: made = [] } = choice.message
    const known = { role: 'assistant' as const, content, ...(made.length === 0 ? {} : { tool_calls: made }) }
    messages.push(keeps ? choice.message : known)
    calls = made
    return choice.message
  }
  return {
    ask: async (round) => {
      const part = { type: 'text' as const, text: taskOf(round) }
      const picture = { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${PIXEL}` } }
      messages.push({
        role: 'user',
        content: [...(round % 4 === 1 ? [picture] : []), { ...part, ...cacheMark(round) }],
      })
      await next()
      return calls.length
    },
    answer: async (round) => {
      for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: `result of round ${round}` })
      return (await next()).content ?? ''
    },
  }
}

/** Known to upstreams alone that take it. */
const cacheMark = (round: number): object => (round % 3 === 0 ? { prompt_cache_breakpoint: { mode: 'explicit' } } : {})

function messagesAgent(model: string, keeps: boolean, isStreamed: boolean): Agent {
  const client = anthropic0(lab.gateway)
  const messages: Anthropic.MessageParam[] = []
  const tools = NAMES.map((name) => ({ name, input_schema: SCHEMA as Anthropic.Tool.InputSchema }))
  let calls: readonly Anthropic.ToolUseBlock[] = []
  const next = async (): Promise<string> => {
    const request = {
      model,
      messages,
      tools,
      system: 'Be brief.',
      max_tokens: 3000,
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
    }
    const message = isStreamed
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request)
    calls = message.content.filter((block) => block.type === 'tool_use')
    const kept = message.content.filter((block) => keeps || block.type !== 'thinking')
    messages.push({ role: 'assistant', content: kept })
    return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  }
  return {
    ask: async (round) => {
      const mark = round % 3 === 0 ? { cache_control: { type: 'ephemeral' as const } } : {}
      messages.push({ role: 'user', content: [{ type: 'text', text: taskOf(round), ...mark }] })
      // Upstreams take four marks at most.
      forgetMarks(messages)
      await next()
      return calls.length
    },
    answer: async (round) => {
      messages.push({ role: 'user', content: calls.map(({ id }, index) => messagesResult(id, index, round)) })
      return await next()
    },
  }
}

function forgetMarks(messages: readonly Anthropic.MessageParam[]): void {
  const marked = messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.filter((block) => 'cache_control' in block),
  )
  for (const block of marked.slice(0, -4)) if ('cache_control' in block) delete block.cache_control
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

function responsesAgent(model: string, keeps: boolean, isStreamed: boolean): Agent {
  const client = openai6(lab.gateway)
  const input: OpenAI.Responses.ResponseInputItem[] = []
  const tools = NAMES.map((name) => ({ type: 'function' as const, name, parameters: SCHEMA, strict: false }))
  let calls: readonly OpenAI.Responses.ResponseFunctionToolCall[] = []
  const next = async (): Promise<string> => {
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
    const response = isStreamed
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request)
    calls = response.output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
    // What a client pushes back is what it got, whatever the types say of single items.
    const items = response.output as readonly object[] as readonly OpenAI.Responses.ResponseInputItem[]
    input.push(...items.filter((item) => keeps || item.type !== 'reasoning'))
    return response.output_text
  }
  return {
    ask: async (round) => {
      input.push({ role: 'user', content: taskOf(round) })
      await next()
      return calls.length
    },
    answer: async (round) => {
      calls.forEach(({ call_id }, index) => {
        const picture = [
          { type: 'input_text' as const, text: 'a picture' },
          { type: 'input_image' as const, image_url: `data:image/png;base64,${PIXEL}`, detail: 'auto' as const },
        ]
        input.push({
          type: 'function_call_output',
          call_id,
          output: index === 2 ? picture : `result of round ${round}`,
        })
      })
      return await next()
    },
  }
}

describe('An agent of twenty turns', () => {
  afterEach(() => {
    expect([...lab.p1.violations, ...lab.m1.violations]).toEqual([])
  })

  const any = [true, false]
  const clients = [
    ['chat', chatAgent, CHAT_MODEL, any],
    // Where its own dialect is spoken, the upstream wants back what it thought.
    ['messages', messagesAgent, MESSAGES_MODEL, [true]],
    ['chat over messages', chatAgent, MESSAGES_MODEL, any],
    ['messages over chat', messagesAgent, CHAT_MODEL, any],
    ['responses over messages', responsesAgent, MESSAGES_MODEL, any],
    ['responses over chat', responsesAgent, CHAT_MODEL, any],
  ] as const
  const cells = clients.flatMap(([name, agentFor, model, keeping]) =>
    keeping.flatMap((keeps) =>
      [true, false].map((isStreamed) => ({
        name: `${name}, ${isStreamed ? 'streamed' : 'whole'}, by a client that ${keeps ? 'keeps all' : 'drops what it does not know'}`,
        agent: () => agentFor(model, keeps, isStreamed),
      })),
    ),
  )

  it.each(cells)('is refused by no upstream: $name', async ({ agent: begin }) => {
    const agent = begin()
    for (let round = 0; round < ROUNDS; round++) {
      expect(await agent.ask(round)).toBe(callsOf(round))
      expect(await agent.answer(round)).toMatch(/^The tools answered: /)
    }
  })
})
