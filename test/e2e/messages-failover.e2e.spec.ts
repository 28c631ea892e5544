import { describe, expect, it } from '@jest/globals'
import { type M1Gateway, MESSAGES, messageText, startM1Gateway } from '../support/m1-gateway.js'
import type { ProviderLabOptions } from '../support/provider-gateways.js'
import { type RawAnswer, sendRaw } from '../support/raw-http.js'

const send = ({ gateway }: M1Gateway, more: object = {}): Promise<RawAnswer> =>
  sendRaw(gateway.url, { path: MESSAGES, body: messageText('Hi', more) })

async function withTwo(options: ProviderLabOptions, run: (two: M1Gateway) => Promise<void>): Promise<void> {
  const two = await startM1Gateway({ withSecond: true, ...options })
  try {
    await run(two)
  } finally {
    await two.close()
  }
}

describe('a second channel', () => {
  it.each(['401', '402', '403', 'quota', '429', '500', '529', 'html', 'malformed', 'reset'] as const)(
    'serves what the first fails with %s',
    async (fault) => {
      await withTwo({}, async (two) => {
        for (const stream of [false, true]) {
          two.simulator.queueFault(fault)
          const answer = await send(two, { stream })
          expect(answer.status).toBe(200)
          expect(answer.text).toContain(stream ? 'event: message_stop' : 'You said: Hi')
        }
        expect(two.second.requests.length).toBeGreaterThanOrEqual(1)
      })
    },
  )

  it.each(['400', '404', '413', '422'] as const)('is not tried for a fault of the caller: %s', async (fault) => {
    await withTwo({}, async (two) => {
      two.simulator.queueFault(fault)
      expect((await send(two)).status).toBe(Number(fault))
      expect(two.second.requests).toEqual([])
    })
  })

  it('serves a stream whose first event is an error', async () => {
    await withTwo({}, async (two) => {
      const body = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
      two.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'text/event-stream' }, body })
      const answer = await send(two, { stream: true })
      expect(answer.text).toContain('event: message_stop')
    })
  })
})
