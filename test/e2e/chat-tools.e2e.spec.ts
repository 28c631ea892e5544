import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { chat, CHAT_PATH } from '../support/chat-bodies.js'
import { chatHelpers, OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const WEATHER = {
  type: 'function',
  function: { name: 'get_weather', description: 'Weather by city', parameters },
} as const
const NOTHING = { type: 'object', properties: {} }
const TIME = { type: 'function', function: { name: 'get_time' } } as const

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe.each(OPENAI_CLIENTS)('tools in chat with %s', (_name, makeClient) => {
  it('come back as tool calls whose arguments are the very text of the model', async () => {
    const args = '{"city" : "Paris",\t"n":1.0}'
    const data = await makeClient(lab.gateway).chat.completions.create({
      ...chat(`Go #args=${args}`),
      tools: [WEATHER],
    })
    const [call] = data.choices[0]?.message.tool_calls ?? []
    expect(data.choices[0]?.finish_reason).toBe('tool_calls')
    expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather', arguments: args } })
  })

  it('come in parallel in one stream, to be joined by their index', async () => {
    const body = { ...chat('get_weather and get_time please'), tools: [WEATHER, TIME], stream: true as const }
    const names: Record<number, string> = {}
    const args: Record<number, string> = {}
    for await (const chunk of await makeClient(lab.gateway).chat.completions.create(body)) {
      for (const { index, function: called } of chunk.choices[0]?.delta.tool_calls ?? []) {
        names[index] = (names[index] ?? '') + (called?.name ?? '')
        args[index] = (args[index] ?? '') + (called?.arguments ?? '')
      }
    }
    expect(names).toEqual({ 0: 'get_weather', 1: 'get_time' })
    expect(JSON.parse(args[0] ?? '')).toHaveProperty('city')
    expect(args[1]).toBe('{}')
  })

  it('run to the end in the runTools loop', async () => {
    const cities: unknown[] = []
    const runner = chatHelpers(makeClient(lab.gateway)).runTools({
      ...chat('What is the weather? #args={"city":"Paris"}'),
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'Weather by city',
            parameters,
            parse: (text: string) => JSON.parse(text) as { city: string },
            function: ({ city }: { city: string }) => {
              cities.push(city)
              return `sunny in ${city}`
            },
          },
        },
      ],
    })
    expect(await runner.finalContent()).toBe('The tools answered: sunny in Paris')
    expect(cities).toEqual(['Paris'])
    expect(lab.simulator.requests).toHaveLength(2)
    expect(lab.simulator.violations).toEqual([])
  })

  it('run to the end in the streaming runTools loop', async () => {
    const runner = chatHelpers(makeClient(lab.gateway)).runTools({
      ...chat('What time is it?'),
      stream: true,
      tools: [
        {
          type: 'function',
          function: { name: 'get_time', description: '', parameters: NOTHING, function: () => 'noon' },
        },
      ],
    })
    expect(await runner.finalContent()).toBe('The tools answered: noon')
  })
})

describe('tool turns on the wire', () => {
  it("carry the caller's argument text to the upstream without a change", async () => {
    const text = '"arguments":"{\\"city\\" : \\"\\u00c9vry\\", \\"n\\":1.0}"'
    const body =
      '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"},' +
      `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f",${text}}}]},` +
      '{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"ok"}]}]}'
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body })
    expect(answer.status).toBe(200)
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
  })

  it.each([
    ['custom tools', { tools: [{ type: 'custom', custom: { name: 'shell', format: { type: 'text' } } }] }],
    ['forced tools', { tools: [WEATHER], tool_choice: { type: 'function', function: { name: 'get_weather' } } }],
    ['strict schemas', { tools: [{ ...WEATHER, function: { ...WEATHER.function, strict: true } }] }],
  ])('carry %s', async (_name, more) => {
    const answer = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: JSON.stringify({ ...chat('Go'), ...more }) })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('"tool_calls"')
  })
})
