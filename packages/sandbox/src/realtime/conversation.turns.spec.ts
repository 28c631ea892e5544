import { afterEach, describe, expect, it } from '@jest/globals'
import { ConversationLab, responseOf, textIn } from '../../../../test/support/conversation-lab.js'
import { shapeOf } from '../../../../test/support/realtime-probe.js'

const lab = new ConversationLab()
const { say, start } = lab

afterEach(async () => {
  await lab.close()
  expect(lab.simulator.violations).toEqual([])
})

describe('a turn in text', () => {
  it('has the order of the GA dialect', async () => {
    await start('ga')
    say('hello there')
    lab.probe.send({ type: 'response.create', response: textIn('ga') })
    const events = await lab.probe.until('rate_limits.updated')
    expect(shapeOf(events)).toEqual([
      'conversation.item.added',
      'conversation.item.done',
      'response.created',
      'response.output_item.added',
      'conversation.item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ])
    expect(responseOf(events.at(-2))).toMatchObject({
      object: 'realtime.response',
      status: 'completed',
      status_details: null,
      output_modalities: ['text'],
      audio: { output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'alloy' } },
      output: [{ role: 'assistant', content: [{ type: 'output_text', text: 'You said: hello there' }] }],
      usage: { input_token_details: { image_tokens: 0 }, output_token_details: { text_tokens: 4, audio_tokens: 0 } },
    })
    expect(events.at(-1)?.['rate_limits']).toEqual([expect.objectContaining({ name: 'tokens' })])
  })

  it('has the order of the beta dialect', async () => {
    await start('beta')
    say('hello there')
    lab.probe.send({ type: 'response.create', response: textIn('beta') })
    const events = await lab.probe.until('rate_limits.updated')
    expect(shapeOf(events)).toEqual([
      'conversation.item.created',
      'response.created',
      'response.output_item.added',
      'conversation.item.created',
      'response.content_part.added',
      'response.text.delta',
      'response.text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ])
    expect(responseOf(events.at(-2))).toMatchObject({
      modalities: ['text'],
      output: [{ object: 'realtime.item', content: [{ type: 'text', text: 'You said: hello there' }] }],
    })
    expect(events.at(-1)?.['rate_limits']).toHaveLength(2)
  })

  it('is cached the second time', async () => {
    await start('ga')
    say('long '.repeat(100))
    lab.probe.send({ type: 'response.create', response: textIn('ga') })
    await lab.probe.next('rate_limits.updated')
    say('again')
    lab.probe.send({ type: 'response.create', response: textIn('ga') })
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({
      usage: {
        input_token_details: { cached_tokens: 128, cached_tokens_details: { text_tokens: 128, audio_tokens: 0 } },
      },
    })
  })

  it('ends incomplete at the token limit', async () => {
    await start('beta')
    say('one two three four')
    lab.probe.send({ type: 'response.create', response: { ...textIn('beta'), max_output_tokens: 3 } })
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({
      status: 'incomplete',
      status_details: { type: 'incomplete', reason: 'max_output_tokens' },
      output: [{ status: 'incomplete', content: [{ text: 'You said: one' }] }],
      usage: { output_tokens: 3 },
    })
  })
})
