import { describe, expect, it } from '@jest/globals'
import { pathToBeta, pathToGa, withMappedParam } from './error-paths.js'

const PAIRS: readonly (readonly [beta: string, ga: string])[] = [
  ['session.modalities', 'session.output_modalities'],
  ['session.modalities[1]', 'session.output_modalities[1]'],
  ['session.voice', 'session.audio.output.voice'],
  ['session.speed', 'session.audio.output.speed'],
  ['session.input_audio_format', 'session.audio.input.format'],
  ['session.output_audio_format', 'session.audio.output.format'],
  ['session.input_audio_transcription', 'session.audio.input.transcription'],
  ['session.input_audio_transcription.model', 'session.audio.input.transcription.model'],
  ['session.input_audio_noise_reduction.type', 'session.audio.input.noise_reduction.type'],
  ['session.turn_detection', 'session.audio.input.turn_detection'],
  ['session.turn_detection.threshold', 'session.audio.input.turn_detection.threshold'],
  ['session.max_response_output_tokens', 'session.max_output_tokens'],
  ['response.modalities', 'response.output_modalities'],
  ['response.voice', 'response.audio.output.voice'],
  ['response.output_audio_format', 'response.audio.output.format'],
]

describe('The path of a setting', () => {
  it.each(PAIRS)('%s is %s in GA, and back', (beta, ga) => {
    expect(pathToGa(beta)).toBe(ga)
    expect(pathToBeta(ga)).toBe(beta)
  })

  it('ends at the format, which is one word in beta', () => {
    expect(pathToBeta('session.audio.input.format.rate')).toBe('session.input_audio_format')
  })

  it.each([
    'session.voices',
    'session.tools[0].name',
    'item.content[0].type',
    'response.max_output_tokens',
    '',
    'audio',
  ])('stays when both have it, or neither: %j', (path) => {
    expect(pathToGa(path)).toBe(path)
    expect(pathToBeta(path)).toBe(path)
  })
})

describe('An error event', () => {
  it('names the field as its reader knows it, in the message too', () => {
    const frame = Buffer.from(
      `{"type":"error","error":{"code":null,"message":"Bad $& \\"x\\": 'session.audio.output.voice', not 'session.audio'.","param":"session.audio.output.voice","n":1.0}}`,
    )
    expect(withMappedParam(frame, pathToBeta).toString()).toBe(
      `{"type":"error","error":{"code":null,"message":"Bad $& \\"x\\": 'session.voice', not 'session.audio'.","param":"session.voice","n":1.0}}`,
    )
  })

  it.each([
    '{"type":"error","error":{"message":"m","param":null}}',
    '{"type":"error","error":{"message":"m"}}',
    '{"type":"error","error":"m"}',
    '{"type":"error"}',
    '{"type":"error","error":{"message":"m","param":"session.tools"}}',
    'error',
  ])('without such a field is the very same frame: %s', (text) => {
    const frame = Buffer.from(text)
    expect(withMappedParam(frame, pathToBeta)).toBe(frame)
  })
})
