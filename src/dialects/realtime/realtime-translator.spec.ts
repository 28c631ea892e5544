import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ROWS } from '../../../test/support/realtime-server-events.js'
import { type Fields, member, TranslatedSession } from '../../../test/support/translated-session.js'
import { ClientDialect } from './client-dialect.js'
import type { RealtimeDialect } from './dialect.js'
import { RealtimeTranslator } from './translator.js'

const undetermined = (): ClientDialect => ClientDialect.ofHandshake({ betaHeader: undefined, protocols: ['realtime'] })

const beta = (): TranslatedSession => new TranslatedSession(ClientDialect.of('beta'), 'ga')

describe('A GA client of a beta upstream', () => {
  const item = (status: string): Fields => ({ id: 'item_2', type: 'message', role: 'assistant', status, content: [] })

  it('hears that an answer is complete before its output item is done', () => {
    const call = new TranslatedSession(ClientDialect.of('ga'), 'beta')
    call.hear({
      type: 'conversation.item.created',
      event_id: 'e1',
      previous_item_id: 'item_1',
      item: item('in_progress'),
    })
    const done = {
      type: 'response.output_item.done',
      event_id: 'e2',
      response_id: 'r',
      output_index: 0,
      item: item('completed'),
    }
    expect(call.hear(done)).toEqual([
      { type: 'conversation.item.done', event_id: 'e2_item', previous_item_id: 'item_1', item: item('completed') },
      done,
    ])
    expect(call.hear(done)).toEqual([done])
  })

  it('hears nothing of the conversation about an answer outside of it', () => {
    const call = new TranslatedSession(ClientDialect.of('ga'), 'beta')
    const done = { type: 'response.output_item.done', event_id: 'e2', item: item('completed') }
    expect(call.hear(done)).toEqual([done])
  })
})

describe('A client that has not shown its dialect', () => {
  const GA_KEYS = { type: 'realtime', output_modalities: ['audio'], max_output_tokens: 'inf' }
  const BETA_KEYS = {
    modalities: ['audio', 'text'],
    voice: 'alloy',
    input_audio_format: 'pcm16',
    max_response_output_tokens: 'inf',
    temperature: 0.8,
  }
  const audio = { input: { format: { type: 'audio/pcm', rate: 24000 } }, output: { voice: 'alloy' } }

  it.each([
    ['ga', { id: 's', ...GA_KEYS, audio }],
    ['beta', { id: 's', ...BETA_KEYS }],
  ] as const)('hears session.created of a %s upstream with the keys of both', (upstream, session) => {
    const call = new TranslatedSession(undetermined(), upstream)
    const [created] = call.hear({ type: 'session.created', event_id: 'e', session })
    expect(member(created, 'session')).toMatchObject({ id: 's', ...GA_KEYS, ...BETA_KEYS, audio })
  })

  it('is a beta client until it shows GA, and then hears a GA upstream untouched', () => {
    const call = new TranslatedSession(undetermined(), 'ga')
    const delta = { type: 'response.output_text.delta', delta: 'x', obfuscation: 'y' }
    expect(call.hear(delta)).toEqual([{ type: 'response.text.delta', delta: 'x' }])
    const update = { type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } }
    expect(call.say(update)).toEqual([update])
    expect(call.client.dialect).toBe('ga')
    expect(call.hear(delta)).toEqual([delta])
  })

  it('is not taken at a word that was refused', () => {
    const client = undetermined()
    const call = new TranslatedSession(client, 'ga')
    expect(() => call.say({ type: 'session.update', session: { type: 'realtime', audio: 1 } })).toThrow()
    expect(client.dialect).toBeUndefined()
  })
})

describe('The translation', () => {
  const texts = ROWS.flatMap(({ beta: one, ga: other }) => [one, other]).filter((text) => text !== undefined)

  it('never throws on damaged frames', () => {
    const damaged = fc
      .tuple(fc.constantFrom(...texts), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), fc.nat())
      .map(([text, changes, length]) => {
        const frame = Buffer.from(text)
        for (const [place, byte] of changes) frame[place % frame.length] = byte
        return length % 3 === 0 ? frame.subarray(0, length % frame.length) : frame
      })
    const combination = fc.constantFrom<readonly [RealtimeDialect, RealtimeDialect]>(['beta', 'ga'], ['ga', 'beta'])
    fc.assert(
      fc.property(damaged, combination, (frame, [client, upstream]) => {
        const translator = new RealtimeTranslator({ client: ClientDialect.of(client), upstream })
        expect(translator.toClient(frame).length).toBeLessThanOrEqual(2)
      }),
      { numRuns: 5000 },
    )
  })

  it('leaves the frame it was given as it was', () => {
    for (const text of texts) {
      for (const [client, upstream] of [
        ['beta', 'ga'],
        ['ga', 'beta'],
      ] as const) {
        const frame = Buffer.from(text)
        new RealtimeTranslator({ client: ClientDialect.of(client), upstream }).toClient(frame)
        expect(frame.toString()).toBe(text)
      }
    }
  })

  it('carries audio over bit by bit, whatever its size', () => {
    const delta = Buffer.alloc(300_000, 'AbC/').toString()
    const [frame] = beta().hear({ type: 'response.output_audio.delta', delta, obfuscation: 'x'.repeat(100) })
    expect(frame).toEqual({ type: 'response.audio.delta', delta })
  })
})
