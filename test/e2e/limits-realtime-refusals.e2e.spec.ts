import { afterEach, describe, expect, it } from '@jest/globals'
import { Metrics } from '../../src/observability/metrics.js'
import {
  costOf,
  CREATED,
  createOf,
  doneWith,
  judged,
  type LimitedSession,
  openSession,
  say,
  startLimitedRealtime,
} from '../support/limited-sessions.js'
import { parseScrape } from '../support/prometheus-text.js'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Lab {
  readonly open: () => Promise<LimitedSession>
  /** `gateway_limit_refusals_total` by limit, of those that have refused something. */
  readonly refusals: () => Promise<Record<string, number>>
}

async function start(limits: object): Promise<Lab> {
  const { gateway, upstream, close } = await startLimitedRealtime({ concurrency: 20, ...limits })
  closers.push(close)
  return {
    open: async () => {
      const session = await openSession(gateway, upstream)
      closers.push(() => session.client.close())
      return session
    },
    refusals: async () => {
      const scrape = parseScrape(await gateway.application.get(Metrics).registry.metrics())
      const samples = scrape.get('gateway_limit_refusals_total')?.samples ?? []
      const refused = samples.filter(({ value }) => value > 0)
      return Object.fromEntries(refused.map(({ labels, value }) => [labels['limit'] ?? '', value]))
    },
  }
}

const APPEND = { type: 'input_audio_buffer.append', audio: 'AAAA' }

describe('The metric of refusals by limits', () => {
  it('counts each answer that a session is refused, under the limit that refused it', async () => {
    const { open, refusals } = await start({ tokensPerMinute: costOf(100) })
    const [one, other] = [await open(), await open()]
    await judged(one, createOf(100))
    expect(await refusals()).toEqual({})
    await judged(other, createOf(100))
    await judged(one, createOf(100), createOf(100))
    expect(await refusals()).toEqual({ tokensPerMinute: 3 })
  })

  it('counts of the audio that is refused the first piece until the reset, of each session', async () => {
    const { open, refusals } = await start({ audioSecondsPerMinute: 20 })
    const [one, other, third] = [await open(), await open(), await open()]
    await judged(one, { type: 'response.create' }, { type: 'response.create' })
    expect(await refusals()).toEqual({})
    await judged(other, APPEND, APPEND, APPEND)
    expect(await refusals()).toEqual({ audioSecondsPerMinute: 1 })
    await judged(third, APPEND, APPEND)
    expect(await refusals()).toEqual({ audioSecondsPerMinute: 2 })
    // A handshake is a request like any other.
    await expect(open()).rejects.toThrow('429')
    expect(await refusals()).toEqual({ audioSecondsPerMinute: 3 })
  })

  it('counts nothing of an answer that the upstream begins by itself, as nobody can refuse it', async () => {
    const { open, refusals } = await start({ tokensPerMinute: costOf(100) + 1 })
    const [one, other] = [await open(), await open()]
    await judged(one, createOf(100))
    await say(other, CREATED)
    await say(other, doneWith(5))
    expect(await refusals()).toEqual({})
  })
})
