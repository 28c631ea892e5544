import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  audioOf,
  type RealtimeEvent,
  RealtimeProbe,
  shapeOf,
  typesOf,
} from '../../../../test/support/realtime-probe.js'
import { type RealtimeSimulator, startRealtimeSimulator } from './realtime.simulator.js'

let simulator: RealtimeSimulator
let probe: RealtimeProbe

beforeEach(async () => {
  simulator = await startRealtimeSimulator({ apiKey: 'test-key', dialect: 'ga' })
})

afterEach(async () => {
  await probe.close()
  await simulator.close()
})

async function open(): Promise<void> {
  probe = await RealtimeProbe.open({ url: simulator.url })
}

async function ask(text: string): Promise<void> {
  await open()
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
  probe.send({ type: 'conversation.item.create', item })
  probe.send({ type: 'response.create' })
}

const responseOf = (event: RealtimeEvent): unknown => event['response']

describe('magic words in a text', () => {
  it('#fail makes the response fail, with the code asked for', async () => {
    await ask('#fail')
    expect(responseOf(await probe.next('response.done'))).toMatchObject({
      status: 'failed',
      status_details: { type: 'failed', error: { type: 'server_error', code: 'server_error' } },
      usage: null,
    })
    await probe.close()
    await ask('#fail=insufficient_quota')
    expect(responseOf(await probe.next('response.done'))).toMatchObject({
      status_details: { error: { code: 'insufficient_quota' } },
    })
  })

  it('#incomplete ends the answer in the middle', async () => {
    await ask('#incomplete')
    expect(responseOf(await probe.next('response.done'))).toMatchObject({
      status: 'incomplete',
      status_details: { type: 'incomplete', reason: 'content_filter' },
      output: [{ status: 'incomplete' }],
    })
  })

  it.each([1000, 1001, 1008, 1011, 1013, 3000, 4999])('#closecode=%i closes with it and a reason', async (code) => {
    await ask(`#closecode=${code}`)
    expect(await probe.closed).toEqual({ code, reason: `simulated close ${code}` })
  })

  it('#closecode=1005 closes without a code, 1006 and #drop without a frame', async () => {
    await ask('#closecode=1005')
    expect(await probe.closed).toMatchObject({ code: 1005 })
    for (const word of ['#closecode=1006', '#drop']) {
      await ask(word)
      await probe.next('response.output_audio.delta')
      expect(await probe.closed).toMatchObject({ code: 1006 })
    }
    expect(simulator.lastSession?.end).toMatchObject({ outcome: 'broken', by: 'simulator' })
  })

  it('#stall falls silent after two deltas, until it is cancelled', async () => {
    await ask('#stall')
    await probe.next('response.output_audio.delta')
    probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
    expect(typesOf(await probe.until('error'))).toEqual(['error'])
    probe.send({ type: 'response.cancel' })
    expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'cancelled' })
  })

  it('#hang gives no answer at all, and the client that leaves is seen', async () => {
    await ask('#hang')
    await probe.next('conversation.item.done')
    probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
    expect(typesOf(await probe.until('error'))).toEqual(['error'])
    const aborted = simulator.nextAbort()
    await probe.close()
    expect((await aborted).end).toMatchObject({ outcome: 'aborted', by: 'client' })
  })

  it('#flood=N sends exactly that much audio', async () => {
    await ask('#flood=1000001')
    const events = await probe.until('response.done')
    expect(audioOf(events)).toHaveLength(1_000_001)
    expect(simulator.recordOf(simulator.lastSession).sentAudio.bytes).toBe(1_000_001)
  })

  it('#flood=N waits for a client that does not read', async () => {
    await ask('#flood=1000000000')
    await probe.next('response.output_audio.delta')
    const stalled = simulator.lastSession?.nextStall()
    probe.socket.pause()
    expect(await stalled).toBe(true)
    expect(simulator.lastSession?.sentBytes).toBeLessThan(64 * 1024 * 1024)
    probe.socket.resume()
  })

  it('#garbage, #binary and #unknown come before an ordinary answer', async () => {
    await ask('#garbage #binary #unknown')
    const events = await probe.until('response.done')
    expect(probe.oddFrames).toHaveLength(2)
    expect(shapeOf(events)).toContain('response.telepathy.delta')
    expect(responseOf(events.at(-1) ?? {})).toMatchObject({ status: 'completed' })
  })

  it('#expire ends the session as its maximum does', async () => {
    await ask('#expire')
    expect(await probe.next('error')).toMatchObject({ error: { code: 'session_expired' } })
    expect(await probe.closed).toMatchObject({ code: 1001 })
  })

  it('#deaf=MS reads nothing for a while', async () => {
    await ask('#deaf=200')
    await probe.next('response.created')
    const before = simulator.lastSession?.receivedBytes ?? 0
    const startedAtMs = performance.now()
    probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
    await probe.next('error')
    expect(performance.now() - startedAtMs).toBeGreaterThan(100)
    expect(simulator.lastSession?.receivedBytes).toBeGreaterThan(before)
  })

  it('work in the instructions as well', async () => {
    await open()
    probe.send({ type: 'response.create', response: { instructions: '#fail' } })
    expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'failed' })
  })
})

describe('magic words queued for a session', () => {
  it.each([
    ['#closecode=1011', 1011],
    ['#drop', 1006],
    ['#expire', 1001],
  ])('%s strikes as soon as it is open', async (word, code) => {
    simulator.queueFault(word)
    await open()
    expect(await probe.closed).toMatchObject({ code })
    expect(simulator.recordOf(simulator.lastSession).sentEventTypes[0]).toBe('session.created')
  })

  it('#hang greets nobody', async () => {
    simulator.queueFault('#hang')
    await open()
    probe.send({ type: 'response.create' })
    const pong = once(probe.socket, 'pong')
    probe.socket.ping()
    await pong
    expect(probe.rest()).toEqual([])
  })

  it('#fail is kept for the response, and the next session is whole', async () => {
    simulator.queueFault('#fail')
    await open()
    probe.send({ type: 'response.create' })
    expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'failed' })
    await probe.close()
    await ask('hello')
    expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'completed' })
  })

  it('that mean nothing are a violation', async () => {
    simulator.queueFault('#tipo')
    await open()
    await probe.closed
    expect(simulator.violations[0]).toContain('queued fault knows no #tipo')
  })
})
