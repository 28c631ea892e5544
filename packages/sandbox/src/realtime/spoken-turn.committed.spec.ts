import { afterEach, describe, expect, it } from '@jest/globals'
import { audioOf, shapeOf } from '../../../../test/support/realtime-probe.js'
import { FRAME_BYTES, sha, spoken, SpokenTurnLab, transcriptOf } from '../../../../test/support/spoken-turn-lab.js'
import { speak } from './audio-format.js'

const lab = new SpokenTurnLab()
const { append, start } = lab

afterEach(() => lab.close())

describe('a turn that the client commits', () => {
  const manual = { turn_detection: null, input_audio_transcription: { model: 'gpt-4o-transcribe' } }

  it('is answered with what was heard, to the byte', async () => {
    await start('beta', manual)
    const audio = spoken()
    append(audio)
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    expect(shapeOf(await lab.probe.until('conversation.item.created'))).toEqual([
      'input_audio_buffer.committed',
      'conversation.item.created',
    ])
    lab.probe.send({ type: 'response.create' })
    const events = await lab.probe.until('response.done')
    const heard = `I heard ${audio.length / 48} ms of pcm16 audio with checksum ${sha(audio)}.`
    expect(transcriptOf(events.at(-1) ?? {})).toBe(heard)
    const record = lab.simulator.recordOf(lab.simulator.lastSession)
    expect(record.receivedAudio).toMatchObject({ bytes: audio.length, checksum: sha(audio) })
    const answer = audioOf(events)
    expect(answer.equals(Buffer.concat([...speak(heard, 'pcm16', 1)]))).toBe(true)
    expect(record.sentAudio).toMatchObject({ bytes: answer.length, checksum: sha(answer) })
    expect(record.receivedEvents.map(({ type }) => type)).not.toContain(undefined)
    expect(record.receivedEvents[1]).toEqual({ type: 'input_audio_buffer.append', audioBytes: FRAME_BYTES })
  })

  it('counts what was heard and spoken', async () => {
    await start('beta', { ...manual, input_audio_transcription: null })
    append(spoken())
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    lab.probe.send({ type: 'response.create' })
    const events = await lab.probe.until('response.done')
    const { usage } = (events.at(-1) as { response: { usage: Record<string, number> } }).response
    const audioTokens = Math.ceil(audioOf(events).length / 48 / 50)
    expect(usage).toMatchObject({
      input_token_details: { audio_tokens: Math.ceil(spoken().length / 48 / 100), cached_tokens: 0 },
      output_token_details: { audio_tokens: audioTokens, text_tokens: 10 },
      output_tokens: audioTokens + 10,
    })
    expect(usage['total_tokens']).toBe((usage['input_tokens'] ?? 0) + (usage['output_tokens'] ?? 0))
  })

  it('takes no turn by itself, and refuses to commit nothing', async () => {
    await start('beta', manual)
    append(Buffer.alloc(4704))
    lab.probe.send({ type: 'input_audio_buffer.commit', event_id: 'ev_1' })
    const reason = 'Expected at least 100ms of audio, but buffer only has 98.00ms of audio.'
    expect(await lab.probe.next('error')).toMatchObject({
      error: {
        code: 'input_audio_buffer_commit_empty',
        message: `Error committing input audio buffer: buffer too small. ${reason}`,
        event_id: 'ev_1',
      },
    })
    append(Buffer.alloc(96))
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    await lab.probe.next('input_audio_buffer.committed')
  })

  it('forgets what is cleared', async () => {
    await start('beta', manual)
    append(spoken())
    lab.probe.send({ type: 'input_audio_buffer.clear' })
    await lab.probe.next('input_audio_buffer.cleared')
    lab.probe.send({ type: 'input_audio_buffer.commit' })
    expect(await lab.probe.next('error')).toMatchObject({ error: { code: 'input_audio_buffer_commit_empty' } })
  })

  it.each(['AAA', 'not base64!', 5, null])('refuses %j as audio', async (audio) => {
    await start('beta', manual)
    lab.probe.send({ type: 'input_audio_buffer.append', audio, event_id: 'ev_1' })
    const expected = 'Expected base64-encoded audio bytes (mono PCM16 at 24kHz) but got an invalid value.'
    expect(await lab.probe.next('error')).toMatchObject({
      error: { code: 'invalid_value', param: 'audio', message: `Invalid 'audio'. ${expected}`, event_id: 'ev_1' },
    })
  })

  it('takes 15 MiB in one event and no byte more', async () => {
    await start('beta', manual)
    append(Buffer.alloc(15 * 1024 * 1024), 15 * 1024 * 1024)
    append(Buffer.alloc(15 * 1024 * 1024 + 1), 15 * 1024 * 1024 + 1)
    expect(await lab.probe.next('error')).toMatchObject({ error: { code: 'invalid_value', param: 'audio' } })
    expect(lab.simulator.recordOf(lab.simulator.lastSession).receivedAudio.bytes).toBe(15 * 1024 * 1024)
  })
})
