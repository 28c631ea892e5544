import type Anthropic from '@anthropic-ai/sdk'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { helloMessage, M1SimulatorLab, tool } from '../../test/chat-simulator-labs.js'
import { THINKING_TEXT } from './m1-thoughts.js'

const lab = new M1SimulatorLab()

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const asked = { ...helloMessage, max_tokens: 2048, tools: [tool] }
const thinking = { type: 'enabled' as const, budget_tokens: 1024 }
const adaptive = { model: 'claude-opus-4-6', thinking: { type: 'adaptive' as const } }

type Content = Anthropic.ContentBlockParam[]

const send = (messages: Anthropic.MessageParam[], options: object = { thinking }): Promise<Anthropic.Message> =>
  lab.client.messages.create({ ...asked, messages, ...options })

/** What is sent back of an answer: its blocks, and the results of its calls. */
const answered = (content: Content, ...others: Content): Anthropic.MessageParam[] => {
  const calls = content.filter((block) => block.type === 'tool_use')
  const results = calls.map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'sunny' }))
  return [
    { role: 'assistant', content },
    { role: 'user', content: [...results, ...others] },
  ]
}

const said = (content: string): Anthropic.MessageParam => ({ role: 'user', content })

const typesOf = ({ content }: Anthropic.Message): readonly string[] => content.map(({ type }) => type)

describe('a loop of several steps', () => {
  it('calls tools as often as its word says, and thinks before each step', async () => {
    const user = said('#steps=2 the weather please')
    const first = await send([user])
    const second = await send([user, ...answered(first.content)])
    const last = await send([user, ...answered(first.content), ...answered(second.content)])
    expect([first, second, last].map(typesOf)).toEqual([
      ['thinking', 'tool_use'],
      ['thinking', 'tool_use'],
      ['thinking', 'text'],
    ])
  })

  it('hides what its word says, whole and in streams', async () => {
    const messages = [said('#redact the weather please')]
    const blocks = [
      { type: 'thinking', thinking: THINKING_TEXT },
      { type: 'redacted_thinking', data: expect.stringMatching(/^[\w+/]+=*$/) },
      { type: 'tool_use', input: { city: 'Paris' } },
    ]
    expect((await send(messages)).content).toMatchObject(blocks)
    const stream = lab.client.messages.stream({ ...asked, messages, thinking })
    expect((await stream.finalMessage()).content).toMatchObject(blocks)
    expect(typesOf(await send(messages, {}))).toEqual(['tool_use'])
  })
})

describe('a step that goes on after the results of tools', () => {
  it('does not think where a word says so', async () => {
    const user = said('#steps=2 #skip the weather please')
    for (const options of [{ thinking }, adaptive]) {
      const first = await send([user], options)
      const second = await send([user, ...answered(first.content)], options)
      const last = await send([user, ...answered(first.content), ...answered(second.content)], options)
      const types = [['thinking', 'tool_use'], ['tool_use'], ['text']]
      expect([first, second, last].map(typesOf)).toEqual(types)
      const anew: Content = [{ type: 'text', text: '#steps=0 #skip' }]
      const next = await send([user, ...answered(first.content), ...answered(second.content, ...anew)], options)
      expect(typesOf(next)).toEqual(['thinking', 'text'])
    }
  })
})

describe('what was thought since the user spoke', () => {
  const user = said('#steps=3 #redact the weather please')
  const loop = async (): Promise<readonly [Content, Content]> => {
    const { content } = await send([user])
    return [content, (await send([user, ...answered(content)])).content]
  }
  const changed = 'blocks in the latest assistant message cannot be modified'
  const edits: readonly [string, (content: Content, other: Content) => Content][] = [
    ['is missed where it can be read', (content) => content.slice(1)],
    ['is missed where it is redacted', (content) => content.toSpliced(1, 1)],
    ['comes in another order', ([a, b, ...rest]) => (a && b ? [b, a, ...rest] : rest)],
    ['is that of another step', ([, , ...rest], [a, b]) => (a && b ? [a, b, ...rest] : rest)],
    [
      'is edited',
      (content) => content.map((block) => (block.type === 'thinking' ? { ...block, thinking: 'edited' } : block)),
    ],
    [
      'is edited where it is redacted',
      (content) => content.map((block) => (block.type === 'redacted_thinking' ? { ...block, data: 'AAAA' } : block)),
    ],
  ]

  it.each(edits)('is refused in each step where it %s', async (_name, edit) => {
    const [first, second] = await loop()
    for (const options of [{ thinking }, adaptive]) {
      const sent = (...steps: Content[]): Promise<Anthropic.Message> =>
        send([user, ...steps.flatMap((step) => answered(step))], options)
      await expect(sent(edit(first, second), second)).rejects.toThrow(changed)
      await expect(sent(first, edit(second, first))).rejects.toThrow(changed)
      expect(typesOf(await sent(first, second))).toContain('tool_use')
      expect(lab.simulator.lastRequest?.callsWithoutThoughts).toBe(0)
    }
  })

  it('may be missed as a whole but at the beginning of a turn with a budget, and is counted', async () => {
    const [first, second] = await loop()
    const sent = async (steps: Content[], options: object): Promise<number | undefined> => {
      await send([user, ...steps.flatMap((step) => answered(step))], options)
      return lab.simulator.lastRequest?.callsWithoutThoughts
    }
    expect(await sent([first, second.slice(2)], { thinking })).toBe(1)
    expect(await sent([first, second.slice(2)], adaptive)).toBe(1)
    expect(await sent([first.slice(2), second.slice(2)], adaptive)).toBe(2)
    expect(await sent([first.slice(2), second], adaptive)).toBe(1)
    expect(await sent([first.slice(2)], {})).toBe(1)
    await expect(sent([first.slice(2), second], { thinking })).rejects.toThrow(
      'Expected `thinking` or `redacted_thinking`, but found `tool_use`',
    )
  })

  it('is missed at the beginning of a turn that the user breaks in on where nothing is left of it', async () => {
    const [first, second] = await loop()
    const sent = (...[a, b]: [Content, Content]): Promise<Anthropic.Message> =>
      send([user, ...answered(a), ...answered(b, { type: 'text', text: 'and now?' })])
    expect(typesOf(await sent(first, second.slice(2)))).toContain('thinking')
    expect(typesOf(await sent(first.slice(2), second))).toContain('thinking')
    await expect(sent(first.slice(2), second.slice(2))).rejects.toThrow('Expected `thinking`')
  })

  it('may stay away from a model that does not think, and from steps before the user spoke', async () => {
    const [first, second] = await loop()
    const without = answered(first.slice(2))
    expect(typesOf(await send([user, ...without], {}))).toEqual(['tool_use'])
    const next = [said('#steps=0 thanks')]
    const before = [user, ...without, { role: 'assistant' as const, content: 'It is sunny.' }]
    expect(typesOf(await send([...before, ...next]))).toEqual(['thinking', 'text'])
    const onward = [user, ...without, ...answered(second, { type: 'text', text: '#steps=1 and now?' })]
    expect(typesOf(await send(onward))).toEqual(['thinking', 'text'])
  })

  it('is not known of calls that others made', async () => {
    const [first] = await loop()
    const renamed = first.map((block) => (block.type === 'tool_use' ? { ...block, id: 'call_1' } : block))
    expect(typesOf(await send([user, ...answered(renamed.slice(1))]))).toContain('tool_use')
  })
})
