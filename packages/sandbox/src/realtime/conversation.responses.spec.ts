import { afterEach, describe, expect, it } from '@jest/globals'
import { ConversationLab, responseOf, textIn } from '../../../../test/support/conversation-lab.js'
import { shapeOf, typesOf } from '../../../../test/support/realtime-probe.js'

const lab = new ConversationLab()
const { refusal, say, start } = lab

afterEach(async () => {
  await lab.close()
  expect(lab.simulator.violations).toEqual([])
})

describe('responses', () => {
  it('come one at a time', async () => {
    await start('ga', { paceMs: 2 })
    say('#words=200')
    lab.probe.send({ type: 'response.create', response: textIn('ga') })
    const { id } = responseOf(await lab.probe.next('response.created'))
    expect(await refusal({ type: 'response.create' })).toMatchObject({
      code: 'conversation_already_has_active_response',
      message: `Conversation already has an active response in progress: ${String(id)}. Wait until the response is finished before creating a new one.`,
      event_id: 'ev_1',
    })
  })

  it('are cancelled, and another may follow at once', async () => {
    await start('beta', { paceMs: 2 })
    say('#words=200')
    lab.probe.send({ type: 'response.create', response: textIn('beta') })
    await lab.probe.next('response.text.delta')
    lab.probe.send({ type: 'response.cancel' })
    lab.probe.send({ type: 'response.create', response: { ...textIn('beta'), instructions: '#words=2' } })
    const events = await lab.probe.until('response.done')
    expect(responseOf(events.at(-1))).toMatchObject({
      status: 'cancelled',
      status_details: { type: 'cancelled', reason: 'client_cancelled' },
      output: [{ status: 'incomplete' }],
    })
    expect(shapeOf(events).slice(-4)).toEqual([
      'response.text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.done',
    ])
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({ status: 'completed' })
  })

  it('cannot be cancelled when there is none', async () => {
    await start('ga')
    expect(await refusal({ type: 'response.cancel' })).toMatchObject({
      code: 'response_cancel_not_active',
      message: 'Cancellation failed: no active response found',
    })
    expect(await refusal({ type: 'response.cancel', response_id: 'resp_x' })).toMatchObject({
      code: 'response_cancel_not_active',
    })
  })

  it('beside the conversation leave no trace in it', async () => {
    await start('ga')
    say('remember', { id: 'item_a' })
    await lab.probe.next('conversation.item.done')
    const input = [
      { type: 'item_reference', id: 'item_a' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'this' }] },
    ]
    lab.probe.send({
      type: 'response.create',
      response: { ...textIn('ga'), conversation: 'none', input, metadata: { a: 'b' } },
    })
    const events = await lab.probe.until('response.done')
    expect(typesOf(events)).not.toContain('conversation.item.added')
    expect(responseOf(events.at(-1))).toMatchObject({
      conversation_id: null,
      metadata: { a: 'b' },
      output: [{ content: [{ text: 'You said: remember You said: this' }] }],
    })
    const missing = { input: [{ type: 'item_reference', id: 'item_x' }] }
    expect(await refusal({ type: 'response.create', response: missing })).toMatchObject({
      param: 'response.input[0].id',
    })
  })

  it.each([
    ['ga', { modalities: ['text'] }, 'unknown_parameter', 'response.modalities'],
    ['ga', { temperature: 0.8 }, 'unknown_parameter', 'response.temperature'],
    ['ga', { output_modalities: ['audio', 'text'] }, 'invalid_value', 'response.output_modalities'],
    ['beta', { output_modalities: ['text'] }, 'unknown_parameter', 'response.output_modalities'],
    ['beta', { modalities: ['audio'] }, 'invalid_value', 'response.modalities'],
    ['beta', { temperature: 2 }, 'decimal_above_max_value', 'response.temperature'],
  ] as const)('of the %s dialect refuse %j', async (dialect, response, code, param) => {
    await start(dialect)
    expect(await refusal({ type: 'response.create', response })).toMatchObject({ code, param, event_id: 'ev_1' })
  })
})
