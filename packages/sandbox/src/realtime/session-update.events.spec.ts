import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SessionUpdateLab } from '../../../../test/support/session-update-lab.js'

const lab = new SessionUpdateLab()
const { start } = lab

afterEach(() => lab.close())

describe('events that are none', () => {
  beforeEach(() => start('ga'))

  it.each([
    ['no type', { event_id: 'ev_1' }, 'invalid_event', 'type'],
    ['an unknown type', { type: 'session.destroy', event_id: 'ev_1' }, 'invalid_value', 'type'],
    ['a server event', { type: 'response.done', event_id: 'ev_1' }, 'invalid_value', 'type'],
    [
      'an update without a session',
      { type: 'session.update', event_id: 'ev_1' },
      'missing_required_parameter',
      'session',
    ],
    ['an unknown member', { type: 'response.cancel', colour: 'red', event_id: 'ev_1' }, 'unknown_parameter', 'colour'],
    ['WebRTC', { type: 'output_audio_buffer.clear', event_id: 'ev_1' }, 'invalid_event', 'type'],
    [
      'beta transcription',
      { type: 'transcription_session.update', session: {}, event_id: 'ev_1' },
      'invalid_value',
      'type',
    ],
  ])('are refused: %s', async (_name, event, code, param) => {
    lab.probe.send(event)
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
