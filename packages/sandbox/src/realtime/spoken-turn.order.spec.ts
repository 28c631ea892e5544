import { afterEach, describe, expect, it } from '@jest/globals'
import { type RealtimeEvent, typesOf } from '../../../../test/support/realtime-probe.js'
import { spoken, SpokenTurnLab, TRANSCRIPTION } from '../../../../test/support/spoken-turn-lab.js'

const lab = new SpokenTurnLab()
const { append, start } = lab

afterEach(() => lab.close())

const ANSWER_GA = [
  'response.created',
  'response.output_item.added',
  'conversation.item.added',
  'response.content_part.added',
  'response.output_audio_transcript.delta',
  'response.output_audio.delta',
  'response.output_audio.done',
  'response.output_audio_transcript.done',
  'response.content_part.done',
  'conversation.item.done',
  'response.output_item.done',
  'response.done',
  'rate_limits.updated',
]

const ANSWER_BETA = [
  'response.created',
  'response.output_item.added',
  'conversation.item.created',
  'response.content_part.added',
  'response.audio_transcript.delta',
  'response.audio.delta',
  'response.audio.done',
  'response.audio_transcript.done',
  'response.content_part.done',
  'response.output_item.done',
  'response.done',
  'rate_limits.updated',
]

/** The order with interleaved deltas counted once. */
function order(events: readonly RealtimeEvent[]): string[] {
  return [...new Set(typesOf(events.filter(({ type }) => !String(type).startsWith(TRANSCRIPTION))))]
}

describe('a spoken turn that the audio itself starts and ends', () => {
  it('has the order of the GA dialect', async () => {
    await start('ga', {})
    append(spoken())
    const events = await lab.probe.until('rate_limits.updated')
    const user = events.slice(0, 5)
    expect(typesOf(user)).toEqual([
      'input_audio_buffer.speech_started',
      'input_audio_buffer.speech_stopped',
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
    ])
    expect(order(events.slice(5))).toEqual(ANSWER_GA)
    const itemId = user[0]?.['item_id']
    expect(user.slice(1, 3).map((event) => event['item_id'])).toEqual([itemId, itemId])
    expect(user[3]).toMatchObject({
      previous_item_id: null,
      item: { id: itemId, type: 'message', role: 'user', content: [{ type: 'input_audio', transcript: null }] },
    })
    expect(user[3]?.['item']).not.toHaveProperty('object')
    expect(events.every((event) => !String(event['type']).endsWith('.delta') || 'obfuscation' in event)).toBe(true)
  })

  it('has the order and the item form of the beta dialect', async () => {
    await start('beta', {})
    append(spoken())
    const events = await lab.probe.until('rate_limits.updated')
    expect(typesOf(events.slice(0, 4))).toEqual([
      'input_audio_buffer.speech_started',
      'input_audio_buffer.speech_stopped',
      'input_audio_buffer.committed',
      'conversation.item.created',
    ])
    expect(order(events.slice(4))).toEqual(ANSWER_BETA)
    expect(events[3]?.['item']).toMatchObject({ object: 'realtime.item' })
    expect(events.some((event) => 'obfuscation' in event)).toBe(false)
    expect(events.find(({ type }) => type === 'response.done')).toMatchObject({
      response: {
        status: 'completed',
        modalities: ['audio', 'text'],
        temperature: 0.8,
        output: [{ object: 'realtime.item', content: [{ type: 'audio', transcript: expect.any(String) }] }],
      },
    })
  })
})
