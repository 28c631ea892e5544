import { afterEach, describe, expect, it } from '@jest/globals'
import { ConversationLab, responseOf, textIn } from '../../../../test/support/conversation-lab.js'
import type { RealtimeEvent } from '../../../../test/support/realtime-probe.js'

const lab = new ConversationLab()
const { refusal, say, start } = lab

afterEach(async () => {
  await lab.close()
  expect(lab.simulator.violations).toEqual([])
})

const TOOL = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

describe.each(['ga', 'beta'] as const)('a function call in the %s dialect', (dialect) => {
  const session = dialect === 'ga' ? { type: 'realtime', tools: [TOOL] } : { tools: [TOOL] }

  it('is made, answered and used', async () => {
    await start(dialect)
    lab.probe.send({ type: 'session.update', session })
    await lab.probe.next('session.updated')
    say('#tool please')
    lab.probe.send({ type: 'response.create' })
    const events = await lab.probe.until('response.done')
    const call = events.find(({ type }) => type === 'response.output_item.added')?.['item'] as RealtimeEvent
    expect(call).toMatchObject({ type: 'function_call', status: 'in_progress', name: 'get_weather', arguments: '' })
    const deltas = events.filter(({ type }) => type === 'response.function_call_arguments.delta')
    expect(deltas.length).toBeGreaterThan(1)
    expect(deltas.map(({ delta }) => delta).join('')).toBe('{"city":"example city"}')
    const done = events.find(({ type }) => type === 'response.function_call_arguments.done')
    expect(done).toMatchObject({ call_id: call['call_id'], arguments: '{"city":"example city"}' })
    expect(done?.['name']).toBe(dialect === 'ga' ? 'get_weather' : undefined)
    expect(responseOf(events.at(-1))).toMatchObject({ output: [{ type: 'function_call', status: 'completed' }] })

    const output = { type: 'function_call_output', call_id: call['call_id'], output: '{"temp_c":21}' }
    lab.probe.send({ type: 'conversation.item.create', item: output })
    lab.probe.send({ type: 'response.create', response: textIn(dialect) })
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({
      output: [{ content: [{ text: 'The tool answered: {"temp_c":21}' }] }],
    })
  })

  it('may interleave with a message', async () => {
    await start(dialect)
    lab.probe.send({ type: 'session.update', session })
    await lab.probe.next('session.updated')
    say('#mixed')
    lab.probe.send({ type: 'response.create', response: textIn(dialect) })
    const events = await lab.probe.until('response.done')
    const indexes = events
      .filter(({ type }) => String(type).endsWith('.delta'))
      .map((event) => event['output_index'])
      .join('')
    expect(indexes).toMatch(/^0+(10){2,}/)
    expect(responseOf(events.at(-1))).toMatchObject({ output: [{ type: 'message' }, { type: 'function_call' }] })
  })
})

describe('tools', () => {
  it('are called when named or forced, with arguments as given, and never when forbidden', async () => {
    await start('ga')
    const other = { type: 'function', name: 'get_time' }
    const ask = async (text: string, choice: unknown): Promise<unknown> => {
      say(text)
      const tools = { tools: [TOOL, other], tool_choice: choice }
      lab.probe.send({ type: 'response.create', response: { ...textIn('ga'), ...tools } })
      return responseOf(await lab.probe.next('response.done'))['output']
    }
    expect(await ask('use get_time now', 'auto')).toMatchObject([{ name: 'get_time', arguments: '{}' }])
    expect(await ask('anything', { type: 'function', name: 'get_time' })).toMatchObject([{ name: 'get_time' }])
    expect(await ask('#tool #args={"city":"Oslo"}', 'auto')).toMatchObject([{ arguments: '{"city":"Oslo"}' }])
    expect(await ask('#tool', 'none')).toMatchObject([{ type: 'message' }])
  })

  it('cannot be answered without having been called', async () => {
    await start('ga')
    const item = { type: 'function_call_output', call_id: 'call_x', output: '' }
    expect(await refusal({ type: 'conversation.item.create', item })).toMatchObject({ code: 'invalid_tool_call_id' })
  })
})
