import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { ChatSimulatorLab } from '../../test/chat-simulator-lab.js'

const lab = new ChatSimulatorLab()

beforeAll(() => lab.start())
afterAll(() => lab.close())

const ask = { model: 'o4-mini', messages: [{ role: 'user' as const, content: '#chunks=5' }] }
const details = (tokens: number): object => ({ completion_tokens_details: { reasoning_tokens: tokens } })

describe('a model that thinks', () => {
  it.each([
    ['minimal', 64],
    ['low', 128],
    ['medium', 256],
    ['high', 512],
    ['xhigh', 1024],
  ] as const)('thinks as much as an effort of %s asks for', async (effort, tokens) => {
    const { usage } = await lab.client.chat.completions.create({ ...ask, reasoning_effort: effort })
    expect(usage).toMatchObject({ completion_tokens: tokens + 5, ...details(tokens) })
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + tokens + 5)
  })

  it('thinks for each choice, and says so at the end of a stream too', async () => {
    const frames = await lab.framesOf({
      ...ask,
      reasoning_effort: 'low',
      n: 2,
      stream_options: { include_usage: true },
    })
    expect(frames.at(-1)).toMatchObject({ usage: { completion_tokens: 2 * (128 + 5), ...details(256) } })
    // The thoughts themselves are never shown.
    expect(JSON.stringify(frames)).not.toMatch(/reasoning_content/)
  })

  it('has as many words left as its thoughts leave of the limit', async () => {
    const limited = { ...ask, reasoning_effort: 'low' as const }
    const some = await lab.client.chat.completions.create({ ...limited, max_completion_tokens: 130 })
    expect(some.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'piece1 piece2' } })
    const none = await lab.client.chat.completions.create({ ...limited, max_completion_tokens: 100 })
    expect(none.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: '' } })
    expect(none.usage).toMatchObject({ completion_tokens: 100, ...details(100) })
  })

  it.each([
    ['without being asked', ask],
    ['with an effort of none', { ...ask, reasoning_effort: 'none' as const }],
    ['where the model cannot', { ...ask, model: 'gpt-4o-mini', reasoning_effort: 'high' as const }],
  ])('does not %s', async (_when, body) => {
    expect((await lab.client.chat.completions.create(body)).usage).toMatchObject({
      completion_tokens: 5,
      ...details(0),
    })
  })
})
