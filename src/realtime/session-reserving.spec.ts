import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { openReservingSession, type ReservingSession } from '../../test/support/reserving-session.js'
import { type SocketPairs, startSocketPairs } from '../../test/support/socket-pairs.js'

let pairs: SocketPairs
let lab: ReservingSession
let heard: string[]
let told: Record<string, unknown>[]
beforeEach(async () => {
  pairs = await startSocketPairs()
  lab = await openReservingSession(pairs)
  heard = []
  told = []
  lab.upstream.on('message', (message: Buffer) => heard.push((JSON.parse(message.toString()) as { type: string }).type))
  lab.client.on('message', (message: Buffer) => told.push(JSON.parse(message.toString()) as Record<string, unknown>))
})
afterEach(() => pairs.close())

const CREATE = '{"type":"response.create","event_id":"mine"}'
const CLEAR = '{"type":"input_audio_buffer.clear"}'
const APPEND = '{"type":"input_audio_buffer.append","audio":"AAAA"}'
const UNKNOWN = '{"type":"nothing","event_id":"odd"}'

const isWaitedFor = (count: number): Promise<void> => eventually(() => lab.allowance.answer.length === count)

describe('An answer whose reservation takes its time', () => {
  it('is overtaken by nothing: what is sent behind it stays behind it, and is judged in order', async () => {
    for (const event of [CLEAR, CREATE, APPEND, UNKNOWN, CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    await eventually(() => heard.length === 1)
    // The far end has gone round once more: whatever was on its way has come.
    lab.upstream.ping()
    await once(lab.upstream, 'pong')
    expect([heard, told]).toEqual([['input_audio_buffer.clear'], []])
    lab.allowance.answer[0]?.()
    await isWaitedFor(2)
    await eventually(() => told.length === 1)
    expect(told).toMatchObject([{ error: { event_id: 'odd' } }])
    lab.allowance.answer[1]?.()
    await eventually(() => heard.length === 5)
    expect(heard.slice(1)).toEqual([
      'response.create',
      'input_audio_buffer.append',
      'response.create',
      'input_audio_buffer.clear',
    ])
  })

  it('is refused before its upstream hears of it, and the session goes on', async () => {
    for (const event of [CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab.allowance.answer[0]?.('There is no room.')
    await eventually(() => heard.length === 1 && told.length === 1)
    expect(heard).toEqual(['input_audio_buffer.clear'])
    const error = { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'There is no room.' }
    expect(told).toMatchObject([{ type: 'error', error: { ...error, event_id: 'mine' } }])
  })

  it('keeps nothing from the client that the upstream says meanwhile', async () => {
    lab.client.send(CREATE)
    await isWaitedFor(1)
    lab.upstream.send('{"type":"input_audio_buffer.speech_started"}')
    await eventually(() => told.length === 1)
    expect(heard).toEqual([])
  })

  it.each(['client', 'upstream'] as const)('does not keep a session whose %s has gone', async (who) => {
    for (const event of [CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab[who].terminate()
    // A client that is not read is seen to have gone when it is written to, or read again.
    lab.allowance.answer[0]?.()
    await lab.session.ended
    expect(lab.allowance.answer).toHaveLength(1)
  })

  it('is let begin and end by a session that is to finish meanwhile, and nothing behind it is', async () => {
    for (const event of [CREATE, CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab.session.finish()
    lab.upstream.send('{"type":"input_audio_buffer.cleared"}')
    await eventually(() => told.length === 1)
    expect(lab.session.endCause).toBeUndefined()
    const closed = once(lab.client, 'close')
    lab.allowance.answer[0]?.()
    await eventually(() => heard.length === 1)
    lab.upstream.send('{"type":"response.created","response":{"id":"resp_1"}}')
    lab.upstream.send('{"type":"response.done","response":{"id":"resp_1"}}')
    expect((await closed)[0]).toBe(1001)
    expect([heard, told.map(({ type }) => type)]).toEqual([
      ['response.create'],
      ['input_audio_buffer.cleared', 'response.created', 'response.done'],
    ])
    expect(lab.allowance.answer).toHaveLength(1)
  })

  it('is refused within a session that is to finish, which ends then', async () => {
    lab.client.send(CREATE)
    await isWaitedFor(1)
    lab.session.finish()
    const closed = once(lab.client, 'close')
    lab.allowance.answer[0]?.('There is no room.')
    expect((await closed)[0]).toBe(1001)
    expect([heard, told]).toMatchObject([[], [{ error: { event_id: 'mine', code: 'rate_limit_exceeded' } }]])
  })

  it('does not keep a session that drains', async () => {
    for (const event of [CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab.session.drain()
    await lab.session.ended
    lab.allowance.answer[0]?.()
    await new Promise(setImmediate)
    expect(heard).toEqual([])
  })
})
