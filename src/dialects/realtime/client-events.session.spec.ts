import { describe, expect, it } from '@jest/globals'

import { accepted, create, createdItem, refused, update } from '../../../test/support/judged-events.js'
import { checkClientEvent, isEventRefusal } from './client-events.js'

describe('The model of a session', () => {
  const model = 'voice-alias'

  it('may be repeated, and is not sent on', () => {
    expect(accepted(update('{"voice":"v","model":"voice-alias"}'), 'beta', { model }).toString()).toBe(
      update('{"voice":"v"}'),
    )
    expect(accepted(update('{ "model" : "voice-alias" , "type":"realtime"}'), 'ga', { model }).toString()).toBe(
      update('{ "type":"realtime"}'),
    )
  })

  it('is not sent on however often it is named', () => {
    const session = '{"model":"other","voice":"v","mod\\u0065l":"voice-alias"}'
    expect(accepted(update(session), 'beta', { model }).toString()).toBe(update('{"voice":"v"}'))
    const endless = `{"model":"other",${'"x":1,'.repeat(2000)}"model":"voice-alias"}`
    expect(refused(update(endless), 'beta', { model }).param).toBe('session.model')
  })

  it.each(['"other"', 'null', '1', '["voice-alias"]'])('cannot become %s', (other) => {
    for (const type of ['session.update', 'transcription_session.update']) {
      const text = `{"type":"${type}","event_id":"ev_1","session":{"model":${other}}}`
      expect(refused(text, 'beta', { model })).toMatchObject({
        code: 'invalid_value',
        param: 'session.model',
        eventId: 'ev_1',
      })
    }
  })
})

describe('Before a client has shown its dialect', () => {
  it.each([
    [update('{"type":"realtime","voice":"x"}'), 'ga'],
    [update('{"type":"realtime","output_modalities":["text"]}'), 'ga'],
    [create('{"output_modalities":["text"]}'), 'ga'],
    [create('{"audio":{"output":{"voice":"x"}}}'), 'ga'],
    [update('{"voice":"x"}'), 'beta'],
    [update('{"turn_detection":null}'), 'beta'],
    [create('{"modalities":["text"]}'), 'beta'],
    ['{"type":"transcription_session.update","session":{}}', 'beta'],
    [update('{"instructions":"x"}'), undefined],
    [create('{"instructions":"x"}'), undefined],
    ['{"type":"response.create"}', undefined],
    ['{"type":"input_audio_buffer.append","audio":"AAAA"}', undefined],
    [createdItem('{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}'), undefined],
  ])('%s shows %s', (text, shows) => {
    const judged = checkClientEvent(Buffer.from(text), undefined)
    if (isEventRefusal(judged)) throw new Error(judged.message)
    expect(judged.shows).toBe(shows)
  })

  it.each([
    [update('{"type":"realtime","audio":1}'), 'session.audio'],
    [update('{"voice":1}'), 'session.voice'],
    [update('{"modalities":["text"],"voice":1}'), 'session.voice'],
  ])('%s is judged by the dialect it shows', (text, param) => {
    expect(checkClientEvent(Buffer.from(text), undefined)).toMatchObject({ param })
  })
})
