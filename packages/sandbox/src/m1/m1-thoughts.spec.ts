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

const types = ({ content }: Anthropic.Message): readonly string[] => content.map(({ type }) => type)

describe('a loop of several steps', () => {
  it('calls tools as often as its word says, and thinks before each step', async () => {
    const user = said('#steps=2 the weather please')
    const first = await send([user])
    const second = await send([user, ...answered(first.content)])
    const last = await send([user, ...answered(first.content), ...answered(second.content)])
    expect([first, second, last].map(types)).toEqual([
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
    expect(types(await send(messages, {}))).toEqual(['tool_use'])
  })
})

describe('what was thought since the user spoke', () => {
  const user = said('#steps=3 #redact the weather please')
  const loop = async (): Promise<readonly [Content, Content]> => {
    const { content } = await send([user])
    return [content, (await send([user, ...answered(content)])).content]
  }
  const changed = 'blocks in the latest assistant message cannot be modified'
  const missed = 'Expected `thinking` or `redacted_thinking`, but found `tool_use`'
  const edits: readonly [string, (content: Content, other: Content) => Content, string][] = [
    ['is missed', (content) => content.slice(2), missed],
    ['is missed where it can be read', (content) => content.slice(1), changed],
    ['is missed where it is redacted', (content) => content.toSpliced(1, 1), changed],
    ['comes in another order', ([a, b, ...rest]) => (a && b ? [b, a, ...rest] : rest), changed],
    ['is that of another step', ([, , ...rest], [a, b]) => (a && b ? [a, b, ...rest] : rest), changed],
    [
      'is edited',
      (content) => content.map((block) => (block.type === 'thinking' ? { ...block, thinking: 'edited' } : block)),
      changed,
    ],
    [
      'is edited where it is redacted',
      (content) => content.map((block) => (block.type === 'redacted_thinking' ? { ...block, data: 'AAAA' } : block)),
      changed,
    ],
  ]

  it.each(edits)('is refused in each step where it %s', async (_name, edit, message) => {
    const [first, second] = await loop()
    await expect(send([user, ...answered(edit(first, second)), ...answered(second)])).rejects.toThrow(message)
    await expect(send([user, ...answered(first), ...answered(edit(second, first))])).rejects.toThrow(message)
    expect(types(await send([user, ...answered(first), ...answered(second)]))).toContain('tool_use')
  })

  it('may stay away from a model that does not think, and from steps before the user spoke', async () => {
    const [first, second] = await loop()
    const without = answered(first.slice(2))
    expect(types(await send([user, ...without], {}))).toEqual(['tool_use'])
    const next = [said('#steps=0 thanks')]
    const before = [user, ...without, { role: 'assistant' as const, content: 'It is sunny.' }]
    expect(types(await send([...before, ...next]))).toEqual(['thinking', 'text'])
    const onward = [user, ...without, ...answered(second, { type: 'text', text: '#steps=1 and now?' })]
    expect(types(await send(onward))).toEqual(['thinking', 'text'])
  })

  it('is not known of calls that others made', async () => {
    const [first] = await loop()
    const renamed = first.map((block) => (block.type === 'tool_use' ? { ...block, id: 'call_1' } : block))
    expect(types(await send([user, ...answered(renamed.slice(1))]))).toContain('tool_use')
  })
})
