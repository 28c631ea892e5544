import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { CHAT, FullGateway } from '../support/full-gateway.js'
import { type RawAnswer, sendRaw } from '../support/raw-http.js'

/** Served at once while memory is short. */
const PLACES = 16

let lab: FullGateway
beforeEach(async () => {
  // Less than any process of Node has: memory is short from the first look on.
  lab = await FullGateway.start({ admission: { memoryBytes: 67_108_864 } })
  await eventually(() => lab.admission.memoryLoad.isHigh)
})
afterEach(() => lab.close())

async function fillAll(): Promise<{ readonly answered: Promise<RawAnswer[]> }> {
  lab.hold()
  const answered = Promise.all(Array.from({ length: PLACES }, () => sendRaw(lab.url, CHAT)))
  await eventually(() => lab.held.length === PLACES)
  return { answered }
}

describe('A process that is short of memory', () => {
  it.each([
    ['/v1/chat/completions', 503, { error: { type: 'overloaded_error', code: 'overloaded' } }],
    ['/v1/messages', 529, { type: 'error', error: { type: 'overloaded_error' } }],
    ['/vidgen/v1/videos/text2video', 503, { code: 5001 }],
  ])(
    'serves some at once, and asks a further caller of %s to come back in five seconds',
    async (path, status, body) => {
      const { answered } = await fillAll()
      const refused = await sendRaw(lab.url, { path, body: '{}', headers: { 'x-request-id': 'further' } })
      expect([refused.status, refused.headers['retry-after']]).toEqual([status, '5'])
      expect(JSON.parse(refused.text)).toMatchObject(body)
      expect(refused.text).toContain('The gateway is short of memory.')
      expect(lab.admission.refused).toEqual({ memory: 1, concurrency: 0, loop_delay: 0 })
      expect(await lab.gateway.logLine('further')).toMatchObject({ status, failure: { kind: 'overloaded' } })
      lab.empty()
      expect(new Set((await answered).map((answer) => answer.status))).toEqual(new Set([200]))
    },
  )

  it('serves the next caller as soon as one of them is done', async () => {
    const { answered } = await fillAll()
    expect((await sendRaw(lab.url, CHAT)).status).toBe(503)
    lab.empty()
    await answered
    await eventually(() => lab.admission.underWay < PLACES)
    expect((await sendRaw(lab.url, CHAT)).status).toBe(200)
  })
})
