import { describe, expect, it } from '@jest/globals'
import { openLoads, outcomeOf, overloadReport, Tally, type Verdict } from '../support/overload-bench.js'

const REASON = '{"error":{"message":"Too much.","type":"overloaded_error","code":"overloaded","param":null}}'
const RETRY_LATER = 'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n'
const NO_TIME = 'HTTP/1.1 503 Service Unavailable\r\n\r\n'
const OTHER_REASON = '{"error":{"message":"No.","type":"server_error","code":"upstream_error","param":null}}'

interface Second {
  readonly [outcome: string]: number
}

const TOOK_MS: Readonly<Record<string, number>> = { good: 5, late: 1_500 }

/** What became of the requests of each second. */
function tallyOf(seconds: readonly Second[]): Tally {
  const tally = new Tally(0)
  for (const [second, outcomes] of seconds.entries()) {
    for (const [outcome, count] of Object.entries(outcomes)) {
      const dueMs = second * 1_000 + 1
      for (let counted = 0; counted < count; counted++) tally.count(outcome, dueMs, dueMs + (TOOK_MS[outcome] ?? 10))
    }
  }
  return tally
}

interface Load {
  readonly seconds: readonly Second[]
  readonly driverShare?: number
  readonly sentLateMs?: number
}

function loadOf({ seconds, driverShare = 0.3, sentLateMs = 1 }: Load) {
  const tally = tallyOf(seconds)
  tally.sentLateMs.push(sentLateMs)
  const goodPerSecond = tally.total('good') / seconds.length
  const shares = { driverShare, gatewayShare: 1 }
  return { name: 'load', ratePerSecond: 1, goodPerSecond, tally, connections: 1, tookMs: 1, ...shares }
}

const CALM: Load = { seconds: [{ good: 50 }, { good: 50 }] }

interface Loads {
  readonly before?: Load
  readonly overload?: Load
  readonly recovery?: Load
  readonly after?: Load
}

const SATURATED: Load = { seconds: [{ good: 100 }, { good: 100 }] }

/** A run that saturates at 100 a second, unless it is told otherwise. */
function judge({ before = SATURATED, overload = CALM, recovery = CALM, after = SATURATED }: Loads): Verdict {
  const machine = { cpu: 'any', cores: 2, node: 'v20', pinned: true }
  const closed = { ratePerSecond: 100, cpuMicroseconds: 1, gatewayShare: 1 }
  const around = { calm: loadOf(CALM), before: loadOf(before), after: loadOf(after) }
  const loads = { ...around, overload: loadOf(overload), recovery: loadOf(recovery) }
  return overloadReport({ machine, mixName: 'mixed', closed, ...loads })
}

const kept: Load = { seconds: [{ good: 80, refused: 220 }] }

describe('An answer of the overload run', () => {
  it.each([
    ['good', { status: 200, isRight: true, isPrompt: true, head: '', refusal: '' }],
    ['late', { status: 200, isRight: true, isPrompt: false, head: '', refusal: '' }],
    ['otherStatus', { status: 200, isRight: false, isPrompt: true, head: '', refusal: '' }],
    ['refused', { status: 503, isRight: false, isPrompt: false, head: RETRY_LATER, refusal: REASON }],
    ['badRefusal', { status: 503, isRight: false, isPrompt: true, head: NO_TIME, refusal: REASON }],
    ['badRefusal', { status: 503, isRight: false, isPrompt: true, head: RETRY_LATER, refusal: '' }],
    ['badRefusal', { status: 503, isRight: false, isPrompt: true, head: RETRY_LATER, refusal: OTHER_REASON }],
    ['otherStatus', { status: 429, isRight: false, isPrompt: true, head: RETRY_LATER, refusal: REASON }],
    ['otherStatus', { status: 500, isRight: true, isPrompt: true, head: '', refusal: '' }],
  ])('counts as %s: %j', (outcome, answer) => {
    expect(outcomeOf(answer)).toBe(outcome)
  })
})

describe('A load of the overload run', () => {
  it.each([0, Number.NaN])('is refused with a rate of %d, as no request of it would ever be due', async (rate) => {
    const phases = [
      { ratePerSecond: 10, durationMs: 10 },
      { ratePerSecond: rate, durationMs: 10 },
    ]
    await expect(openLoads({ port: 9, phases })).rejects.toThrow(`nothing was served in time before a load of ${rate}`)
  })
})

describe('The judge of the overload run', () => {
  it('is content with four fifths of saturation and a refusal for everybody else', () => {
    const { text, code } = judge({ overload: kept })
    expect(code).toBe(0)
    expect(text).toContain('KEPT   goodput under overload 80 % of saturation')
    expect(text).toContain('KEPT   recovered after 0 s')
  })

  it.each([
    ['less goodput', { seconds: [{ good: 79, refused: 221 }] }, 'MISSED goodput'],
    ['goodput that came late', { seconds: [{ good: 79, late: 221 }] }, 'MISSED goodput'],
    ['a refusal that does not say when to come back', { seconds: [{ good: 90, badRefusal: 1 }] }, 'MISSED 1 requests'],
    ['a broken connection', { seconds: [{ good: 90, broken: 1 }] }, 'MISSED 1 requests'],
    ['a request without an answer', { seconds: [{ good: 90, unanswered: 1 }] }, 'MISSED 1 requests'],
    ['another error', { seconds: [{ good: 90, otherStatus: 1 }] }, 'MISSED 1 requests'],
  ])('is not content with %s', (_name, overload, words) => {
    const { text, code } = judge({ overload })
    expect([code, text]).toEqual([1, expect.stringContaining(words)])
  })

  it.each([
    [100, 90, 76, 'KEPT   goodput under overload 80 % of saturation'],
    [90, 100, 75, 'MISSED goodput under overload 79 % of saturation'],
  ])(
    'takes the middle of a saturation of %i before and %i after for what %i are a share of',
    (before, after, good, words) => {
      const loads = { before: { seconds: [{ good: before }] }, after: { seconds: [{ good: after }] } }
      expect(judge({ ...loads, overload: { seconds: [{ good }] } }).text).toContain(words)
    },
  )

  it.each([
    [100, 85, 0],
    [100, 84, 2],
    [84, 100, 2],
  ])('with %i a second before the overload and %i after it gives the code %i', (before, after, code) => {
    const loads = { before: { seconds: [{ good: before }] }, after: { seconds: [{ good: after }] } }
    expect(judge({ ...loads, overload: SATURATED }).code).toBe(code)
  })

  it.each([
    [10, 0, 'KEPT   recovered after 10 s'],
    [11, 1, 'MISSED recovered after 11 s'],
  ])('gives %i bad seconds after the overload the code %i', (bad, code, words) => {
    const seconds = Array.from({ length: 15 }, (_, second) => (second < bad ? { good: 49, refused: 1 } : { good: 50 }))
    const verdict = judge({ overload: kept, recovery: { seconds } })
    expect([verdict.code, verdict.text]).toEqual([code, expect.stringContaining(words)])
  })

  it('does not call it recovered when the last second was not as before', () => {
    const recovery: Load = { seconds: [{ good: 50 }, { good: 49, late: 1 }] }
    expect(judge({ overload: kept, recovery }).text).toContain('MISSED recovered after – s')
  })

  it.each([
    ['the driver had no more to give', { ...kept, driverShare: 0.95 }],
    ['requests were sent late', { ...kept, sentLateMs: 300 }],
    ['there were no connections left', { seconds: [{ good: 80, refused: 219, unsent: 1 }] }],
  ])('calls the run void when %s', (_name, overload) => {
    expect(judge({ overload }).code).toBe(2)
  })
})
