import { afterEach, describe, expect, it } from '@jest/globals'
import { ConversationLab, nameIn, responseOf, textIn } from '../../../../test/support/conversation-lab.js'
import { audioOf, type RealtimeEvent } from '../../../../test/support/realtime-probe.js'

const lab = new ConversationLab()
const { refusal, say, start } = lab

afterEach(async () => {
  await lab.close()
  expect(lab.simulator.violations).toEqual([])
})

describe.each(['ga', 'beta'] as const)('items in the %s dialect', (dialect) => {
  it('take the place they ask for', async () => {
    await start(dialect)
    say('first', { id: 'item_a' })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: null, item: { id: 'item_a' } })
    say('second', { id: 'item_b' })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: 'item_a' })
    const item = { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'x' }] }
    lab.probe.send({ type: 'conversation.item.create', previous_item_id: 'root', item })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: null })
    lab.probe.send({ type: 'conversation.item.create', previous_item_id: 'item_a', item })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: 'item_a' })
    expect(await refusal({ type: 'conversation.item.create', previous_item_id: 'nobody', item })).toMatchObject({
      code: 'item_create_invalid_previous_item_id',
      param: 'previous_item_id',
      event_id: 'ev_1',
    })
  })

  it('are retrieved, truncated and deleted', async () => {
    await start(dialect)
    say('speak')
    lab.probe.send({ type: 'response.create' })
    const events = await lab.probe.until('response.done')
    const itemId = (responseOf(events.at(-1))['output'] as RealtimeEvent[])[0]?.['id']
    const place = { item_id: itemId, content_index: 0 }
    const spokenMs = audioOf(events).length / 48
    expect(await refusal({ type: 'conversation.item.truncate', ...place, audio_end_ms: spokenMs + 1 })).toMatchObject({
      message: `Audio content of ${spokenMs}ms is already shorter than ${spokenMs + 1}ms`,
    })
    lab.probe.send({ type: 'conversation.item.truncate', ...place, audio_end_ms: 100 })
    expect(await lab.probe.next('conversation.item.truncated')).toMatchObject({ ...place, audio_end_ms: 100 })
    lab.probe.send({ type: 'conversation.item.retrieve', item_id: itemId })
    const part = { type: dialect === 'ga' ? 'output_audio' : 'audio', transcript: null }
    expect(await lab.probe.next('conversation.item.retrieved')).toMatchObject({ item: { id: itemId, content: [part] } })
    lab.probe.send({ type: 'conversation.item.delete', item_id: itemId })
    expect(await lab.probe.next('conversation.item.deleted')).toMatchObject({ item_id: itemId })
    for (const action of ['retrieve', 'delete'] as const) {
      expect(await refusal({ type: `conversation.item.${action}`, item_id: itemId })).toMatchObject({
        code: `item_${action}_invalid_item_id`,
      })
    }
    expect(await refusal({ type: 'conversation.item.truncate', ...place, audio_end_ms: 1 })).toMatchObject({
      code: 'item_truncate_invalid_item_id',
    })
  })

  it.each([
    [
      'another dialect',
      { role: 'assistant', content: [{ type: dialect === 'ga' ? 'text' : 'output_text', text: 'x' }] },
      'invalid_value',
      'item.content[0].type',
    ],
    [
      'a text of another type',
      { role: 'user', content: [{ type: 'input_text', text: 5 }] },
      'invalid_type',
      'item.content[0].text',
    ],
    [
      'bad audio',
      { role: 'user', content: [{ type: 'input_audio', audio: '!' }] },
      'invalid_value',
      'item.content[0].audio',
    ],
    ['no role', { content: [] }, 'missing_required_parameter', 'item.role'],
    ['a long id', { id: 'x'.repeat(33), role: 'user', content: [] }, 'string_above_max_length', 'item.id'],
  ])('are refused with %s', async (_name, item, code, param) => {
    await start(dialect)
    const event = { type: 'conversation.item.create', item: { type: 'message', ...item } }
    expect(await refusal(event)).toMatchObject({ code, param, event_id: 'ev_1' })
  })

  it('may hold audio, which is heard', async () => {
    await start(dialect)
    const audio = Buffer.alloc(9600, 1).toString('base64')
    say('', { content: [{ type: 'input_audio', audio }] })
    const created = await lab.probe.next(nameIn(dialect))
    expect(created['item']).toMatchObject({ content: [{ type: 'input_audio', transcript: null }] })
    expect(JSON.stringify(created)).not.toContain(audio)
    lab.probe.send({ type: 'response.create', response: textIn(dialect) })
    expect(JSON.stringify(await lab.probe.next('response.done'))).toContain('I heard 200 ms of pcm16 audio')
  })
})
