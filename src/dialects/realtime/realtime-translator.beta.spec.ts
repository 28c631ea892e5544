import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { type Fields, member, TranslatedSession } from '../../../test/support/translated-session.js'
import { ClientDialect } from './client-dialect.js'
import { checkClientEvent, isEventRefusal } from './client-events.js'
import { RealtimeTranslator } from './translator.js'

/** Keys that reach a prototype are refused, and a generator of odd values likes them. */
const allowedJson = fc
  .jsonValue()
  .filter((value) => !/"(?:__proto__|constructor|prototype)":/.test(JSON.stringify(value)))

const beta = (): TranslatedSession => new TranslatedSession(ClientDialect.of('beta'), 'ga')

/** What a GA upstream answers: what it was told, as it understood it. */
const echo = (told: Fields | undefined): Fields => ({ type: 'session.updated', session: member(told, 'session') })

describe('A beta client of a GA upstream', () => {
  it('hears its own session back, word for word', () => {
    const modalities = fc.constantFrom(['text'], ['text', 'audio'], ['audio', 'text'])
    const format = fc.constantFrom('pcm16', 'g711_ulaw', 'g711_alaw')
    const session = fc.record(
      {
        modalities,
        voice: fc.string(),
        instructions: fc.string({ unit: 'binary' }),
        input_audio_format: format,
        output_audio_format: format,
        input_audio_transcription: fc.constantFrom(null, { model: 'whisper-1' }),
        input_audio_noise_reduction: fc.constantFrom(null, { type: 'near_field' }),
        turn_detection: fc.constantFrom(null, { type: 'server_vad', threshold: 0.5 }),
        max_response_output_tokens: fc.constantFrom('inf', 7),
        speed: fc.constantFrom(1, 1.5),
        tool_choice: fc.constantFrom('auto', { type: 'function', name: 'f' }),
        tools: fc.array(
          fc.record({ name: fc.string(), parameters: fc.dictionary(fc.constantFrom('a', 'b'), allowedJson) }),
        ),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(session, fc.constantFrom(0.6, 0.8, 1.2), (asked, temperature) => {
        const call = beta()
        const [told] = call.say({ type: 'session.update', session: { ...asked, temperature } })
        const plain = JSON.parse(JSON.stringify({ ...asked, temperature, client_secret: null })) as Fields
        expect(member(call.hear(echo(told))[0], 'session')).toEqual(plain)
      }),
      { numRuns: 500 },
    )
  })

  it('hears its temperature and modalities in its own spelling until it changes them', () => {
    const translator = new RealtimeTranslator({ client: ClientDialect.of('beta'), upstream: 'ga' })
    const say = (text: string): void => {
      const judged = checkClientEvent(Buffer.from(text), 'beta')
      if (!isEventRefusal(judged)) translator.toUpstream(judged)
    }
    const hear = (modality: string): string =>
      String(
        translator.toClient(
          Buffer.from(`{"type":"session.updated","session":{"output_modalities":["${modality}"]}}`),
        )[0],
      )
    expect(hear('audio')).toBe(
      '{"type":"session.updated","session":{"modalities":["audio","text"],"temperature":0.8,"client_secret":null}}',
    )
    say('{"type":"session.update","session":{"modalities":[ "text", "audio" ],"temperature":0.90}}')
    expect(hear('audio')).toContain('"modalities":[ "text", "audio" ],"temperature":0.90')
    say('{"type":"session.update","session":{"voice":"x"}}')
    expect(hear('audio')).toContain('"modalities":[ "text", "audio" ],"temperature":0.90')
    expect(hear('text')).toContain('"modalities":["text"],"temperature":0.90')
  })

  it('hears the usual words where it said null', () => {
    const call = beta()
    const [told] = call.say({ type: 'session.update', session: { temperature: null, modalities: null } })
    expect(told).toEqual({ type: 'session.update', session: { type: 'realtime', output_modalities: null } })
    const shown = { type: 'session.updated', session: { output_modalities: ['audio'] } }
    expect(member(call.hear(shown)[0], 'session')).toMatchObject({ temperature: 0.8, modalities: ['audio', 'text'] })
  })

  it('hears the wishes of one response with that response, and those of the session with the next', () => {
    const call = beta()
    call.say({ type: 'session.update', session: { temperature: 1.1, modalities: ['text', 'audio'] } })
    call.say({ type: 'response.create', response: { temperature: 0.7, modalities: ['audio', 'text'] } })
    const response = (id: string): Fields => ({ id, output_modalities: ['audio'], output: [] })
    const heard = (type: string, id: string): unknown =>
      member(call.hear({ type, response: response(id) })[0], 'response')
    const own = { temperature: 0.7, modalities: ['audio', 'text'] }
    const usual = { temperature: 1.1, modalities: ['text', 'audio'] }
    expect(heard('response.created', 'r1')).toMatchObject(own)
    expect(heard('response.created', 'r2')).toMatchObject(usual)
    expect(heard('response.done', 'r2')).toMatchObject(usual)
    expect(heard('response.done', 'r1')).toMatchObject(own)
    expect(heard('response.done', 'r1')).toMatchObject(usual)
  })

  it('does not hear the wishes of a refused response with the next one', () => {
    const call = beta()
    call.say({ type: 'response.create', response: { temperature: 0.7 } })
    call.hear({ type: 'error', error: { type: 'invalid_request_error', message: 'no' } })
    const [created] = call.hear({ type: 'response.created', response: { id: 'r1' } })
    expect(member(created, 'response')['temperature']).toBe(0.8)
  })

  it('hears a whole spoken turn in the order and the names of beta', () => {
    const call = beta()
    const types = [
      'session.created',
      'input_audio_buffer.speech_started',
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
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
    expect(types.flatMap((type) => call.hear({ type })).map(({ type }) => type)).toEqual([
      'session.created',
      'input_audio_buffer.speech_started',
      'input_audio_buffer.committed',
      'conversation.item.created',
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
    ])
  })

  it('remembers sixteen responses under way and forgets the oldest', () => {
    const call = beta()
    for (let index = 0; index < 17; index++) {
      call.say({ type: 'response.create', response: { temperature: 0.7 } })
      call.hear({ type: 'response.created', response: { id: `r${index}` } })
    }
    const heard = (id: string): unknown =>
      member(call.hear({ type: 'response.done', response: { id } })[0], 'response')['temperature']
    expect(heard('r0')).toBe(0.8)
    expect(heard('r1')).toBe(0.7)
    expect(heard('r16')).toBe(0.7)
  })
})
