import { afterEach, describe, expect, it } from '@jest/globals'
import { typesOf } from '../../../../test/support/realtime-probe.js'
import { sha, spoken, SpokenTurnLab, TRANSCRIPTION } from '../../../../test/support/spoken-turn-lab.js'

const lab = new SpokenTurnLab()
const { append, start } = lab

afterEach(() => lab.close())

describe('the transcription of what was said', () => {
  const withModel = (model: string, more: object = {}): object => ({
    audio: { input: { turn_detection: null, transcription: { model, ...more } } },
  })

  it('comes in deltas and ends with its tokens', async () => {
    await start('ga', { ...withModel('gpt-4o-transcribe'), include: ['item.input_audio_transcription.logprobs'] })
    const audio = spoken()
    append(audio)
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    const events = await lab.probe.until(`${TRANSCRIPTION}.completed`)
    const transcript = `The audio has checksum ${sha(audio)}. It lasts ${(audio.length / 48_000).toFixed(2)} seconds.`
    const deltas = events.filter(({ type }) => type === `${TRANSCRIPTION}.delta`)
    expect(deltas.map(({ delta }) => delta).join('')).toBe(transcript)
    const completed = events.at(-1) ?? {}
    expect(completed).toMatchObject({
      transcript,
      usage: { type: 'tokens', input_token_details: { text_tokens: 0, audio_tokens: Math.ceil(audio.length / 4800) } },
      logprobs: expect.any(Array),
    })
    lab.probe.send({ type: 'conversation.item.retrieve', item_id: completed['item_id'] })
    expect(await lab.probe.next('conversation.item.retrieved')).toMatchObject({ item: { content: [{ transcript }] } })
  })

  it('comes at once and with its duration from Whisper', async () => {
    await start('ga', withModel('whisper-1'))
    append(spoken())
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    const events = await lab.probe.until(`${TRANSCRIPTION}.completed`)
    expect(typesOf(events)).not.toContain(`${TRANSCRIPTION}.delta`)
    expect(events.at(-1)).toMatchObject({ usage: { type: 'duration', seconds: 3 } })
  })

  it('may fail', async () => {
    await start('ga', withModel('whisper-1', { prompt: '#fail' }))
    append(spoken())
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    expect(await lab.probe.next(`${TRANSCRIPTION}.failed`)).toMatchObject({ error: { code: 'audio_unintelligible' } })
  })

  it('runs beside the answer when speech makes the turn', async () => {
    await start('ga', { audio: { input: { transcription: { model: 'gpt-4o-transcribe' } } } })
    append(spoken())
    const events = typesOf(await lab.probe.until('rate_limits.updated'))
    const first = events.indexOf(`${TRANSCRIPTION}.delta`)
    expect(first).toBeGreaterThan(events.indexOf('response.created'))
    expect(events.indexOf(`${TRANSCRIPTION}.completed`)).toBeLessThan(events.indexOf('response.output_audio.done'))
  })
})
