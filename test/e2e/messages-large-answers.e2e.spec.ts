import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { askLimits } from '../support/asked-limits.js'
import { type M1Gateway, MESSAGES, messageText, startM1Gateway } from '../support/m1-gateway.js'
import { openRaw, sendRaw } from '../support/raw-http.js'

const LIMIT = 1000

/** More than the gateway holds, and more than connections do: its caller can leave in the middle. */
const LARGE: Fault = {
  kind: 'status',
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: `{"content":[{"type":"text","text":"${'x'.repeat(32_000_000)}"}]}`,
}

/** Four characters to a token, and four tokens for the message. */
const PROMPT = 2 + 4

let lab: M1Gateway

beforeAll(async () => {
  const limits = { tokensPerMinute: LIMIT }
  lab = await startM1Gateway({ keys: ['leaving', 'staying'].map((id) => ({ id, key: id, limits })) })
})
afterAll(() => lab.close())

/** A question of eight characters, whose caller is known by the same name in the log. */
const question = (key: string) => ({
  path: MESSAGES,
  body: messageText('Hi there', { max_tokens: 900 }),
  headers: { authorization: `Bearer ${key}`, 'x-request-id': key },
})

async function remaining(key: string): Promise<number | undefined> {
  return (await askLimits(lab.gateway.url, key)).limits['tokensPerMinute']?.remaining
}

describe('An answer too large to be held, whose upstream says nothing of its use,', () => {
  it('keeps what it reserved when its caller leaves in the middle: only the prompt is known', async () => {
    lab.simulator.queueFault(LARGE)
    const answer = await openRaw(lab.gateway.url, question('leaving'))
    const reservedLeft = await remaining('leaving')
    expect(reservedLeft).toBeLessThanOrEqual(LIMIT - 900)
    await once(answer, 'data')
    answer.destroy()
    const { status, usage } = await lab.gateway.logLine('leaving')
    expect([status, usage]).toEqual([499, { units: { input_tokens: PROMPT }, estimated: true }])
    expect(await remaining('leaving')).toBe(reservedLeft)
  })

  it('has cost its prompt when all of it was read', async () => {
    lab.simulator.queueFault(LARGE)
    const { status, complete } = await sendRaw(lab.gateway.url, question('staying'))
    expect([status, complete]).toEqual([200, true])
    const { usage } = await lab.gateway.logLine('staying')
    expect(usage).toEqual({ units: { input_tokens: PROMPT }, estimated: true })
    expect(await remaining('staying')).toBe(LIMIT - PROMPT)
  })
})
