import { afterEach, describe, expect, it } from '@jest/globals'
import { audioOf, typesOf } from '../../../../test/support/realtime-probe.js'
import { spoken, SpokenTurnLab, transcriptOf } from '../../../../test/support/spoken-turn-lab.js'

const lab = new SpokenTurnLab()
const { append, start } = lab

afterEach(() => lab.close())

describe('a spoken turn that the audio itself starts and ends', () => {
  it('counts speech in received audio, with the padding before and the silence behind it', async () => {
    await start('ga', {})
    append(spoken())
    const started = await lab.probe.next('input_audio_buffer.speech_started')
    const stopped = await lab.probe.next('input_audio_buffer.speech_stopped')
    // 500 ms of silence, then the first syllable's soft beginning, minus 300 ms of padding.
    expect(started['audio_start_ms']).toBeGreaterThanOrEqual(220)
    expect(started['audio_start_ms']).toBeLessThanOrEqual(300)
    // The last syllable falls silent 40 ms before the speech ends; 400 ms later it is over.
    const spokenMs = 60 * 'What is the weather'.length
    expect(stopped['audio_end_ms']).toBeGreaterThanOrEqual(500 + spokenMs - 100 + 400)
    expect(stopped['audio_end_ms']).toBeLessThanOrEqual(500 + spokenMs + 400)
  })

  it('does not depend on how the audio is cut into events', async () => {
    await start('ga', {})
    for (const pieceBytes of [960, 1001, 100_000]) {
      append(spoken(), pieceBytes)
      await lab.probe.next('rate_limits.updated')
      lab.probe.send({ type: 'input_audio_buffer.clear' })
      await lab.probe.next('input_audio_buffer.cleared')
    }
    const { committed } = lab.simulator.recordOf(lab.simulator.lastSession)
    expect(committed).toHaveLength(3)
    expect(new Set(committed.map(({ checksum }) => checksum)).size).toBe(1)
  })

  it.each(['g711_ulaw', 'g711_alaw'] as const)('is heard and answered in %s', async (format) => {
    await start('beta', { input_audio_format: format, output_audio_format: format })
    append(spoken(format), 800)
    const events = await lab.probe.until('response.done')
    const done = events.at(-1) ?? {}
    expect(transcriptOf(done)).toContain(`ms of ${format} audio`)
    const audio = audioOf(events)
    expect(audio.length).toBe(8 * 60 * String(transcriptOf(done)).length)
    expect(new Set(audio).size).toBeGreaterThan(20)
  })

  it('ends after a longer silence when told so', async () => {
    await start('beta', { turn_detection: { type: 'server_vad', silence_duration_ms: 700 } })
    append(spoken('pcm16', 400))
    await lab.probe.next('input_audio_buffer.speech_started')
    append(Buffer.alloc(48 * 400))
    const stopped = await lab.probe.next('input_audio_buffer.speech_stopped')
    expect(stopped['audio_end_ms']).toBeGreaterThanOrEqual(400 + 60 * 19 - 100 + 700)
  })

  it('starts no response when told so', async () => {
    await start('beta', { turn_detection: { type: 'server_vad', create_response: false } })
    append(spoken())
    lab.probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
    const events = await lab.probe.until('error')
    expect(typesOf(events)).not.toContain('response.created')
    expect(typesOf(events)).toContain('conversation.item.created')
  })

  it('interrupts the answer being spoken', async () => {
    await start('ga', {}, 5)
    append(spoken())
    await lab.probe.next('response.output_audio.delta')
    append(spoken())
    const events = await lab.probe.until('input_audio_buffer.committed')
    const done = events.findIndex(({ type }) => type === 'response.done')
    expect(events[done]).toMatchObject({
      response: {
        status: 'cancelled',
        status_details: { type: 'cancelled', reason: 'turn_detected' },
        output: [{ status: 'incomplete' }],
        usage: { output_tokens: expect.any(Number) },
      },
    })
    expect(typesOf(events.slice(0, done))).toContain('input_audio_buffer.speech_started')
    expect(typesOf(events.slice(done))).toContain('input_audio_buffer.speech_stopped')
  })

  it('may be told not to interrupt, and then says that it is still speaking', async () => {
    await start('beta', { turn_detection: { type: 'server_vad', interrupt_response: false } }, 5)
    append(spoken())
    await lab.probe.next('response.audio.delta')
    append(spoken())
    const events = await lab.probe.until('error')
    expect(typesOf(events)).not.toContain('response.done')
    expect(events.at(-1)).toMatchObject({
      error: { code: 'conversation_already_has_active_response', event_id: null },
    })
  })

  it('is found by semantic detection, sooner or later', async () => {
    const detect = (eagerness: string): object => ({
      audio: { input: { turn_detection: { type: 'semantic_vad', eagerness } } },
    })
    await start('ga', detect('high'))
    append(spoken())
    await lab.probe.next('response.done')
    lab.probe.send({ type: 'session.update', session: { type: 'realtime', ...detect('low') } })
    await lab.probe.next('session.updated')
    append(Buffer.concat([spoken(), Buffer.alloc(48 * 1000)]))
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    expect(typesOf(await lab.probe.until('input_audio_buffer.committed'))).not.toContain(
      'input_audio_buffer.speech_stopped',
    )
  })

  it('stays silent for silence', async () => {
    await start('ga', {})
    append(Buffer.alloc(96_000))
    lab.probe.send({ type: 'input_audio_buffer.clear' })
    expect(typesOf(await lab.probe.until('input_audio_buffer.cleared'))).toEqual(['input_audio_buffer.cleared'])
  })
})
