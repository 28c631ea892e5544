import { describe, expect, it } from '@jest/globals'

import { create, createdItem, refused, update } from '../../../test/support/judged-events.js'

describe('A client event whose fields are wrong', () => {
  it.each([
    [update('null'), 'session', 'missing_required_parameter'],
    ['{"type":"session.update","event_id":"ev_1"}', 'session', 'missing_required_parameter'],
    [update('[]'), 'session', 'invalid_type'],
    [update('{"modalities":"text"}'), 'session.modalities', 'invalid_type'],
    [update('{"modalities":["video"]}'), 'session.modalities[0]', 'invalid_value'],
    [update('{"modalities":[]}'), 'session.modalities', 'empty_array'],
    [update('{"instructions":1}'), 'session.instructions', 'invalid_type'],
    [update('{"voice":{}}'), 'session.voice', 'invalid_type'],
    [update('{"input_audio_format":"mp3"}'), 'session.input_audio_format', 'invalid_value'],
    [update('{"output_audio_format":16}'), 'session.output_audio_format', 'invalid_type'],
    [update('{"input_audio_transcription":"whisper-1"}'), 'session.input_audio_transcription', 'invalid_type'],
    [update('{"input_audio_transcription":{"model":1}}'), 'session.input_audio_transcription.model', 'invalid_type'],
    [update('{"turn_detection":"server_vad"}'), 'session.turn_detection', 'invalid_type'],
    [update('{"turn_detection":{"type":"magic"}}'), 'session.turn_detection.type', 'invalid_value'],
    [update('{"turn_detection":{"threshold":"1"}}'), 'session.turn_detection.threshold', 'invalid_type'],
    [
      update('{"turn_detection":{"prefix_padding_ms":1.5}}'),
      'session.turn_detection.prefix_padding_ms',
      'invalid_type',
    ],
    [
      update('{"turn_detection":{"silence_duration_ms":true}}'),
      'session.turn_detection.silence_duration_ms',
      'invalid_type',
    ],
    [update('{"temperature":"0.8"}'), 'session.temperature', 'invalid_type'],
    [update('{"temperature":0.5}'), 'session.temperature', 'decimal_below_min_value'],
    [update('{"temperature":1.3}'), 'session.temperature', 'decimal_above_max_value'],
    [update('{"tools":{}}'), 'session.tools', 'invalid_type'],
    [update('{"tools":[1]}'), 'session.tools[0]', 'invalid_type'],
    [update('{"tool_choice":1}'), 'session.tool_choice', 'invalid_type'],
    [update('{"max_response_output_tokens":"all"}'), 'session.max_response_output_tokens', 'invalid_type'],
    ['{"type":"response.create","event_id":1}', 'event_id', 'invalid_type'],
    [create('[]'), 'response', 'invalid_type'],
    [create('{"modalities":{}}'), 'response.modalities', 'invalid_type'],
    [create('{"temperature":2}'), 'response.temperature', 'decimal_above_max_value'],
    [create('{"input":[1]}'), 'response.input[0]', 'invalid_type'],
    ['{"type":"conversation.item.create"}', 'item', 'missing_required_parameter'],
    [createdItem('{}'), 'item.type', 'missing_required_parameter'],
    [createdItem('{"type":"message","content":"hi"}'), 'item.content', 'invalid_type'],
    [createdItem('{"type":"message","content":[{}]}'), 'item.content[0].type', 'missing_required_parameter'],
    [
      createdItem('{"type":"message","content":[{"type":"input_audio","audio":"%%%%"}]}'),
      'item.content[0].audio',
      'invalid_value',
    ],
    [
      createdItem('{"type":"message","content":[{"type":"input_audio","audio":"\u0141AAA"}]}'),
      'item.content[0].audio',
      'invalid_value',
    ],
    ['{"type":"conversation.item.retrieve"}', 'item_id', 'missing_required_parameter'],
    ['{"type":"conversation.item.delete","item_id":1}', 'item_id', 'invalid_type'],
    [
      '{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":1}',
      'content_index',
      'missing_required_parameter',
    ],
    [
      '{"type":"conversation.item.truncate","item_id":"i","content_index":0}',
      'audio_end_ms',
      'missing_required_parameter',
    ],
    ['{"type":"response.cancel","response_id":[]}', 'response_id', 'invalid_type'],
    ['{"type":"transcription_session.update","session":1}', 'session', 'invalid_type'],
  ])('is refused: %s names %s', (text, param, code) => {
    expect(refused(text)).toMatchObject({ type: 'invalid_request_error', param, code })
  })

  it.each([
    [update('{}'), 'session.type', 'missing_required_parameter'],
    [update('{"type":"other"}'), 'session.type', 'invalid_value'],
    [update('{"type":"realtime","output_modalities":"audio"}'), 'session.output_modalities', 'invalid_type'],
    [update('{"type":"realtime","audio":[]}'), 'session.audio', 'invalid_type'],
    [update('{"type":"realtime","audio":{"input":{"format":"pcm16"}}}'), 'session.audio.input.format', 'invalid_type'],
    [
      update('{"type":"realtime","audio":{"output":{"format":{"type":"mp3"}}}}'),
      'session.audio.output.format.type',
      'invalid_value',
    ],
    [
      update('{"type":"realtime","audio":{"input":{"turn_detection":{"threshold":"1"}}}}'),
      'session.audio.input.turn_detection.threshold',
      'invalid_type',
    ],
    [create('{"audio":{"output":{"voice":1}}}'), 'response.audio.output.voice', 'invalid_type'],
    ['{"type":"transcription_session.update","session":{}}', 'type', 'invalid_value'],
  ])('is refused to a GA client: %s names %s', (text, param, code) => {
    expect(refused(text, 'ga')).toMatchObject({ param, code })
  })

  it('is told back with the event_id of the client', () => {
    expect(refused(update('{"voice":1}')).eventId).toBe('ev_1')
  })
})
