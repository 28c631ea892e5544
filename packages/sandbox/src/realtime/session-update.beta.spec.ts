import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SessionUpdateLab, TOOL } from '../../../../test/support/session-update-lab.js'

const lab = new SessionUpdateLab()
const { start, updated, updateRefusal } = lab

afterEach(() => lab.close())

describe('session.update in the beta dialect', () => {
  beforeEach(() => start('beta'))

  it('takes every setting of the specification', async () => {
    const session = {
      modalities: ['text', 'audio'],
      instructions: 'Be brief.',
      voice: 'alloy',
      input_audio_format: 'g711_ulaw',
      output_audio_format: 'g711_alaw',
      input_audio_transcription: { model: 'whisper-1' },
      turn_detection: { type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 500 },
      temperature: 0.7,
      tools: [TOOL],
      tool_choice: 'auto',
    }
    expect(await updated(session)).toMatchObject({ ...session, modalities: ['audio', 'text'] })
  })

  it.each([
    ['audio alone', { modalities: ['audio'] }, 'invalid_value', 'session.modalities'],
    ['a session type', { type: 'realtime' }, 'unknown_parameter', 'session.type'],
    ['GA modalities', { output_modalities: ['audio'] }, 'unknown_parameter', 'session.output_modalities'],
    ['GA audio', { audio: {} }, 'unknown_parameter', 'session.audio'],
    ['too cold a temperature', { temperature: 0.5 }, 'decimal_below_min_value', 'session.temperature'],
    ['too hot a temperature', { temperature: 1.3 }, 'decimal_above_max_value', 'session.temperature'],
    ['an unknown format', { input_audio_format: 'mp3' }, 'invalid_value', 'session.input_audio_format'],
    ['a GA voice', { voice: 'marin' }, 'invalid_value', 'session.voice'],
    [
      'an idle time',
      { turn_detection: { type: 'server_vad', idle_timeout_ms: 6000 } },
      'unknown_parameter',
      'session.turn_detection.idle_timeout_ms',
    ],
    [
      'a silence in text',
      { turn_detection: { type: 'server_vad', silence_duration_ms: '500' } },
      'invalid_type',
      'session.turn_detection.silence_duration_ms',
    ],
    [
      'an unknown transcriber',
      { input_audio_transcription: { model: 'ear-1' } },
      'invalid_value',
      'session.input_audio_transcription.model',
    ],
  ])('refuses %s', async (_name, session, code, param) => {
    expect(await updateRefusal(session)).toMatchObject({ type: 'invalid_request_error', code, param, event_id: 'ev_1' })
  })

  it('says which modalities there are', async () => {
    const { message } = await updateRefusal({ modalities: ['audio'] })
    const supported = "Supported combinations are: ['text'] and ['audio', 'text']."
    expect(message).toBe(`Invalid modalities: ['audio']. ${supported}`)
  })
})
