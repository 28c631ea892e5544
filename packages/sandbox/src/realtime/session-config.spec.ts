import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SessionUpdateLab, TOOL } from '../../../../test/support/realtime-probe.js'

const lab = new SessionUpdateLab()
const { start, updateRefusal, updated } = lab

afterEach(() => lab.close())

async function expectRefused(session: unknown, code: string, param: string): Promise<void> {
  expect(await updateRefusal(session)).toMatchObject({ type: 'invalid_request_error', code, param, event_id: 'ev_1' })
}

describe('session.update in the GA dialect', () => {
  beforeEach(() => start('ga'))

  async function expectUnchanged(): Promise<void> {
    const unchanged = { instructions: '', tools: [], max_output_tokens: 'inf' }
    expect(await updated({ type: 'realtime' })).toMatchObject(unchanged)
  }

  it('changes only what is given, deep inside audio too', async () => {
    const first = await updated({
      type: 'realtime',
      instructions: 'Be brief.',
      audio: { output: { voice: 'marin' } },
    })
    expect(first).toMatchObject({ instructions: 'Be brief.', audio: { output: { voice: 'marin', speed: 1 } } })
    const second = await updated({
      type: 'realtime',
      audio: { input: { turn_detection: { type: 'server_vad', threshold: 0.7 } } },
    })
    expect(second).toMatchObject({ instructions: 'Be brief.', audio: { output: { voice: 'marin' } } })
    expect(second['audio']).toMatchObject({
      input: {
        format: { type: 'audio/pcm', rate: 24_000 },
        turn_detection: { type: 'server_vad', threshold: 0.7, silence_duration_ms: 200, idle_timeout_ms: null },
      },
    })
    expect(await updated({ type: 'realtime', instructions: '' })).toMatchObject({ instructions: '' })
  })

  it('takes every documented setting', async () => {
    const session = {
      type: 'realtime',
      output_modalities: ['text'],
      instructions: 'Be brief.',
      audio: {
        input: {
          format: { type: 'audio/pcmu' },
          transcription: { model: 'gpt-4o-transcribe', language: 'en', prompt: 'names' },
          noise_reduction: { type: 'near_field' },
          turn_detection: null,
        },
        output: { format: { type: 'audio/pcma' }, voice: { id: 'voice_1' }, speed: 1.25 },
      },
      tools: [TOOL],
      tool_choice: { type: 'function', name: 'get_weather' },
      max_output_tokens: 200,
      truncation: { type: 'retention_ratio', retention_ratio: 0.8 },
      tracing: 'auto',
      include: ['item.input_audio_transcription.logprobs'],
      reasoning: { effort: 'low' },
      parallel_tool_calls: false,
    }
    expect(await updated(session)).toMatchObject(session)
  })

  it.each([
    ['a missing type', { type: undefined, instructions: 'x' }, 'missing_required_parameter', 'type'],
    ['modalities', { modalities: ['text'] }, 'unknown_parameter', 'modalities'],
    ['a voice of the beta', { voice: 'alloy' }, 'unknown_parameter', 'voice'],
    ['a temperature', { temperature: 0.8 }, 'unknown_parameter', 'temperature'],
    ['turn detection of the beta', { turn_detection: null }, 'unknown_parameter', 'turn_detection'],
    ['both modalities', { output_modalities: ['audio', 'text'] }, 'invalid_value', 'output_modalities'],
    ['an unknown voice', { audio: { output: { voice: 'nova' } } }, 'invalid_value', 'audio.output.voice'],
    ['a format of the beta', { audio: { input: { format: 'pcm16' } } }, 'invalid_type', 'audio.input.format'],
    [
      'another rate',
      { audio: { input: { format: { type: 'audio/pcm', rate: 16_000 } } } },
      'integer_below_min_value',
      'audio.input.format.rate',
    ],
    ['a wild speed', { audio: { output: { speed: 3 } } }, 'decimal_above_max_value', 'audio.output.speed'],
    [
      'a wild threshold',
      { audio: { input: { turn_detection: { type: 'server_vad', threshold: 2 } } } },
      'decimal_above_max_value',
      'audio.input.turn_detection.threshold',
    ],
    [
      'another detection',
      { audio: { input: { turn_detection: { type: 'magic' } } } },
      'invalid_value',
      'audio.input.turn_detection.type',
    ],
    [
      'eagerness for server VAD',
      { audio: { input: { turn_detection: { type: 'server_vad', eagerness: 'low' } } } },
      'unknown_parameter',
      'audio.input.turn_detection.eagerness',
    ],
    [
      'a wrapped tool',
      { tools: [{ type: 'function', name: 'f', function: {} }] },
      'unknown_parameter',
      'tools[0].function',
    ],
    ['a nameless tool', { tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].name'],
    ['too many tokens', { max_output_tokens: 5000 }, 'integer_above_max_value', 'max_output_tokens'],
    ['instructions of another type', { instructions: 5 }, 'invalid_type', 'instructions'],
    ['another model', { model: 'gpt-realtime-mini' }, 'invalid_value', 'model'],
    ['a transcription session', { type: 'transcription' }, 'invalid_session_type', 'type'],
  ])('refuses %s and changes nothing', async (_name, change, code, setting) => {
    await expectRefused({ type: 'realtime', ...change }, code, `session.${setting}`)
    await expectUnchanged()
  })

  it('refuses no object and changes nothing', async () => {
    await expectRefused('realtime', 'invalid_type', 'session')
    await expectUnchanged()
  })
})

it('keeps the voice once the model has spoken', async () => {
  await start('ga')
  lab.probe.send({ type: 'response.create' })
  await lab.probe.next('response.done')
  expect(await updateRefusal({ type: 'realtime', audio: { output: { voice: 'echo' } } })).toMatchObject({
    code: 'cannot_update_voice',
  })
  await updated({ type: 'realtime', audio: { output: { voice: 'alloy' } } })
})

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
    ['audio alone', { modalities: ['audio'] }, 'invalid_value', 'modalities'],
    ['a session type', { type: 'realtime' }, 'unknown_parameter', 'type'],
    ['GA modalities', { output_modalities: ['audio'] }, 'unknown_parameter', 'output_modalities'],
    ['GA audio', { audio: {} }, 'unknown_parameter', 'audio'],
    ['too cold a temperature', { temperature: 0.5 }, 'decimal_below_min_value', 'temperature'],
    ['too hot a temperature', { temperature: 1.3 }, 'decimal_above_max_value', 'temperature'],
    ['an unknown format', { input_audio_format: 'mp3' }, 'invalid_value', 'input_audio_format'],
    ['a GA voice', { voice: 'marin' }, 'invalid_value', 'voice'],
    [
      'an idle time',
      { turn_detection: { type: 'server_vad', idle_timeout_ms: 6000 } },
      'unknown_parameter',
      'turn_detection.idle_timeout_ms',
    ],
    [
      'a silence in text',
      { turn_detection: { type: 'server_vad', silence_duration_ms: '500' } },
      'invalid_type',
      'turn_detection.silence_duration_ms',
    ],
    [
      'an unknown transcriber',
      { input_audio_transcription: { model: 'ear-1' } },
      'invalid_value',
      'input_audio_transcription.model',
    ],
  ])('refuses %s', async (_name, session, code, setting) => {
    await expectRefused(session, code, `session.${setting}`)
  })

  it('says which modalities there are', async () => {
    const { message } = await updateRefusal({ modalities: ['audio'] })
    const supported = "Supported combinations are: ['text'] and ['audio', 'text']."
    expect(message).toBe(`Invalid modalities: ['audio']. ${supported}`)
  })
})

describe('events that are none', () => {
  beforeEach(() => start('ga'))

  it.each([
    ['no type', {}, 'invalid_event', 'type'],
    ['an unknown type', { type: 'session.destroy' }, 'invalid_value', 'type'],
    ['a server event', { type: 'response.done' }, 'invalid_value', 'type'],
    ['an update without a session', { type: 'session.update' }, 'missing_required_parameter', 'session'],
    ['an unknown member', { type: 'response.cancel', colour: 'red' }, 'unknown_parameter', 'colour'],
    ['WebRTC', { type: 'output_audio_buffer.clear' }, 'invalid_event', 'type'],
    ['beta transcription', { type: 'transcription_session.update', session: {} }, 'invalid_value', 'type'],
  ])('are refused: %s', async (_name, event, code, param) => {
    lab.probe.send({ ...event, event_id: 'ev_1' })
    expect(await lab.probe.next('error')).toMatchObject({ error: { code, param, event_id: 'ev_1' } })
    expect(lab.simulator.violations).toEqual([])
  })

  it('are violations when they are no JSON object or come in a binary frame', async () => {
    lab.probe.send('{"type":')
    await lab.probe.next('error')
    lab.probe.send('[]')
    await lab.probe.next('error')
    lab.probe.socket.send(Buffer.from('{"type":"response.create"}'))
    expect(await lab.probe.next('error')).toMatchObject({ error: { code: 'invalid_json', event_id: null } })
    expect(lab.simulator.violations).toHaveLength(3)
  })
})
