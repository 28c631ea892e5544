import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { parseConfig } from '../../test/support/config.js'
import { contextAt, dialectOf } from '../../test/support/endpoints.js'
import { eventually, promised } from '../../test/support/eventually.js'
import { heldBytes } from '../../test/support/held-memory.js'
import { ConfigStore } from '../config/config-store.js'
import type { GatewayConfig } from '../config/settings.js'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import { RequestContext } from '../core/request-context.js'
import { Metrics } from '../observability/metrics.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { MemoryWindows } from './counters.js'
import { dropUpstreamLimits, remainingOf, upstreamDuration, writeLimitHeaders } from './limit-errors.js'
import { RateLimiter, LimitScopes, OTHER_BEARERS } from './rate-limiter.js'
import { AdaptiveTimeout, Deadline, RedisConnection } from './redis-connection.js'

const MEGABYTE = 1_000_000
const INVENTED = 100_000

/** A limiter as the gateway has it, and what it logs. */
function limiterOf(settings: object) {
  const config = new ConfigStore(parseConfig(JSON.stringify(settings), {}))
  const hooks = new RequestHooks()
  const warnings: unknown[][] = []
  const logger = { info: () => undefined, warn: (...line: unknown[]) => void warnings.push(line) }
  const limiter = new RateLimiter(config, hooks, new Metrics(), logger)
  return { limiter, hooks, warnings }
}

function begin(
  limiter: RateLimiter,
  caller: Caller,
): { readonly call: RequestContext; readonly scope: string | undefined } {
  const call = contextAt('POST', '/v1/chat/completions', 'req', performance.now())
  call.caller = caller
  try {
    expect(limiter.begin(call)).toBe(true)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
  }
  return { call, scope: /scope=([^;]+)/.exec(call.responseHeaders['x-gateway-limit'] ?? '')?.[1] }
}

const invented = (index: number): Caller => ({ keyId: 'caller', bearer: `invented-${index}` })

describe('A hundred thousand invented bearers', () => {
  it('are counted in bounded memory, and those beyond ten thousand together', () => {
    const { limiter, hooks } = limiterOf({
      auth: { defaultLimits: { requestsPerMinute: 5, tokensPerMinute: 1000, concurrency: 5 } },
    })
    const beforeBytes = heldBytes()
    const timersBefore = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const refused = new Map<string | undefined, number>()
    for (let index = 0; index < INVENTED; index++) {
      const { call, scope } = begin(limiter, invented(index))
      refused.set(scope, (refused.get(scope) ?? 0) + 1)
      hooks.over(call, { status: 200, left: false, totalMs: 1, gatewayMs: 1 })
    }
    expect(heldBytes() - beforeBytes).toBeLessThan(20 * MEGABYTE)
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length - timersBefore).toBeLessThan(10)
    expect(Object.fromEntries(refused)).toEqual({ undefined: 10_005, [OTHER_BEARERS]: INVENTED - 10_005 })
    // Who was there before has limits of its own still.
    expect(begin(limiter, invented(0)).scope).toBeUndefined()
  })
})

describe('The scopes of limits', () => {
  afterEach(() => {
    jest.useRealTimers()
  })

  it('are those of a key, or of a bearer by a digest', () => {
    const scopes = new LimitScopes()
    expect(scopes.of({ keyId: 'team-a' })).toBe('key:team-a')
    expect(scopes.of(invented(1))).toMatch(/^bearer:[0-9a-f]{32}$/)
    expect(scopes.find(invented(1))).toBe(scopes.of(invented(1)))
  })

  it('stay with a caller that comes at least once a minute, and have room again for others once a caller is idle', () => {
    jest.useFakeTimers()
    const scopes = new LimitScopes(2)
    const [first, second, third] = [invented(1), invented(2), invented(3)]
    const own = scopes.of(first)
    scopes.of(second)
    expect([scopes.of(third), scopes.find(third)]).toEqual([OTHER_BEARERS, OTHER_BEARERS])
    jest.advanceTimersByTime(40_000)
    expect(scopes.of(first)).toBe(own)
    jest.advanceTimersByTime(40_000)
    expect(scopes.of(third)).not.toBe(OTHER_BEARERS)
    expect([scopes.of(first), scopes.of(second)]).toEqual([own, OTHER_BEARERS])
  })

  it('are not used up by looking', () => {
    const scopes = new LimitScopes(1)
    for (let index = 0; index < 5; index++) expect(scopes.find(invented(index))).not.toBe(OTHER_BEARERS)
    expect(scopes.of(invented(9))).not.toBe(OTHER_BEARERS)
  })
})

describe('The limits of keys that have none of their own', () => {
  it('are those of the configuration in force, also for a key that stays the same', async () => {
    const configOf = (requestsPerMinute: number): GatewayConfig =>
      parseConfig(JSON.stringify({ auth: { defaultLimits: { requestsPerMinute } } }), {})
    const store = new ConfigStore(configOf(1), () => Promise.resolve({ config: configOf(3), file: '' }))
    const logger = { info: () => undefined, warn: () => undefined }
    const limiter = new RateLimiter(store, new RequestHooks(), new Metrics(), logger)
    const caller = { keyId: 'stored' }
    const refusals = (): (string | undefined)[] => [1, 2].map(() => begin(limiter, caller).scope)
    expect(refusals()).toEqual([undefined, 'key:stored'])
    await store.reload()
    expect([...refusals(), ...refusals()]).toEqual([undefined, undefined, 'key:stored', 'key:stored'])
  })
})

describe('A key that has no limits', () => {
  it('is not counted at all, though others have the defaults', () => {
    const { limiter } = limiterOf({ auth: { defaultLimits: { concurrency: 1 } } })
    const calls = [{}, {}, {}].map((limits) => begin(limiter, { keyId: 'free', limits }).call)
    expect(calls.map(({ quota, responseHeaders }) => [quota, Object.keys(responseHeaders)])).toEqual(
      calls.map(() => [undefined, ['x-request-id']]),
    )
    expect(begin(limiter, { keyId: 'team' }).call.quota).toBeDefined()
  })
})

describe('Keys of the store that have limits', () => {
  const limits = { concurrency: 1 }

  it('are warned of once where several workers count each for itself', () => {
    const { limiter, warnings } = limiterOf({ server: { workers: 2 }, database: { url: 'postgres://db/gateway' } })
    begin(limiter, { keyId: 'free' })
    begin(limiter, { keyId: 'free', limits: {} })
    expect(warnings).toEqual([])
    begin(limiter, { keyId: 'stored', limits })
    begin(limiter, { keyId: 'other', limits })
    expect(warnings).toEqual([
      [{ keyId: 'stored', workers: 2 }, expect.stringMatching(/set redis\.url, or server\.workers to 1/)],
    ])
  })

  it('are not where one process counts', () => {
    const { limiter, warnings } = limiterOf({})
    begin(limiter, { keyId: 'stored', limits })
    expect(warnings).toEqual([])
  })
})

const missed = (milliseconds: number): Promise<number> => {
  const startedAtMs = performance.now()
  return new Promise((resolve) => {
    new Deadline(milliseconds, () => {
      resolve(performance.now() - startedAtMs)
    })
  })
}

function stall(milliseconds: number): void {
  const endsAtMs = performance.now() + milliseconds
  while (performance.now() < endsAtMs);
}

describe('A deadline', () => {
  it('is missed after its time', async () => {
    const tookMs = await missed(40)
    expect(tookMs).toBeGreaterThanOrEqual(38)
    expect(tookMs).toBeLessThan(promised(1000))
  })

  it('is never missed once it is cleared', async () => {
    let isMissed = false
    const deadline = new Deadline(4, () => {
      isMissed = true
    })
    deadline.clear()
    await missed(40)
    expect(isMissed).toBe(false)
  })

  it('is kept by an answer that came while this process was busy', async () => {
    const server = createServer((socket) => socket.on('data', (chunk) => socket.write(chunk))).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await once(client, 'connect')
    try {
      const outcome = await new Promise<string>((resolve) => {
        const deadline = new Deadline(50, () => {
          resolve('missed')
        })
        client.once('data', () => {
          deadline.clear()
          resolve('kept')
        })
        client.write('ping')
        stall(120)
      })
      expect(outcome).toBe('kept')
    } finally {
      client.destroy()
      server.close()
    }
  })
})

describe('The timeout of a command', () => {
  it('is the configured one, at once twice the slowest reply, and never more than eight times as configured', () => {
    const timeout = new AdaptiveTimeout(100)
    const seen = [1, 49, 150, 20, 5000, 10].map((replyMs) => {
      timeout.observe(replyMs)
      return Math.round(timeout.milliseconds / 10) * 10
    })
    expect(seen).toEqual([100, 100, 300, 300, 800, 800])
  })
})

/** The command by which a client learns that the server has loaded its data. */
const INFO = /info/i

describe('A Redis that is slow', () => {
  it('is not used while its probe takes longer than any command may, and is once it is quick again', async () => {
    let delayMs = 100
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (chunk: Buffer) => {
        if (INFO.test(chunk.toString())) socket.write('$9\r\nloading:0\r\n')
        else setTimeout(() => socket.write('+OK\r\n'), delayMs)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const warnings: unknown[] = []
    const logger = { info: () => undefined, warn: (fields: unknown) => void warnings.push(fields) }
    // A command gets 80 ms at most.
    const connection = new RedisConnection(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`, 10, logger)
    try {
      await connection.open()
      expect(connection.isUnavailable).toBe(true)
      expect(warnings).toMatchObject([{ err: { message: 'Redis answers too late.' } }])
      expect(await connection.execute(() => connection.client.get('key'))).toBeUndefined()
      delayMs = 0
      await eventually(() => !connection.isUnavailable)
    } finally {
      await connection.close()
      server.close()
    }
  })
})

const NOTHING_SEEN = { lastSeen: () => undefined }

describe('The headers of a limit', () => {
  it.each([
    [0, '0s'],
    [-5, '0s'],
    [1, '1ms'],
    [250, '250ms'],
    [999, '999ms'],
    [1000, '1s'],
    [1001, '2s'],
    [12_000, '12s'],
    [59_001, '1m0s'],
    [60_000, '1m0s'],
    [61_500, '1m2s'],
  ])('spell %d ms as the upstream does: %s', (milliseconds, spelled) => {
    expect(upstreamDuration(milliseconds)).toBe(spelled)
  })

  it('show all of an unused limit', () => {
    const headers: Record<string, string> = {}
    writeLimitHeaders(
      headers,
      dialectOf('/v1/audio/speech'),
      { audioSecondsPerMinute: 90, concurrency: 3 },
      NOTHING_SEEN,
    )
    expect(headers).toEqual({
      'x-ratelimit-limit-audio-seconds': '90',
      'x-ratelimit-remaining-audio-seconds': '90',
      'x-ratelimit-reset-audio-seconds': '0s',
    })
  })

  it('never show less than nothing', () => {
    const state = { used: 150_000, allowed: 90_000, endsAtMs: performance.now() }
    expect(remainingOf('audioSecondsPerMinute', 90, state)).toBe(0)
    expect(remainingOf('audioSecondsPerMinute', 90, { ...state, used: 10_001 })).toBe(79)
  })

  it.each(['/v1/messages', '/v1/messages/count_tokens'])('are those of the messages family at %s', (path) => {
    const headers: Record<string, string> = {}
    writeLimitHeaders(headers, dialectOf(path), { requestsPerMinute: 7 }, NOTHING_SEEN)
    expect(headers).toMatchObject({
      'anthropic-ratelimit-requests-limit': '7',
      'anthropic-ratelimit-requests-remaining': '7',
    })
    expect(Object.keys(headers)).toHaveLength(3)
  })

  it('are those of everybody else at a path that only begins like theirs', () => {
    const headers: Record<string, string> = {}
    writeLimitHeaders(headers, dialectOf('/v1/messagesque'), { requestsPerMinute: 7 }, NOTHING_SEEN)
    expect(headers).toHaveProperty('x-ratelimit-limit-requests', '7')
  })
})

describe('The figures of an upstream', () => {
  it('are taken out in every dialect, whatever they count, and nothing else is', () => {
    const headers = {
      'x-ratelimit-limit-tokens': '600000',
      'anthropic-ratelimit-output-tokens-reset': '2026-11-20T10:00:05Z',
      'anthropic-priority-input-tokens-remaining': '9000',
      'content-type': 'application/json',
      'retry-after': '2',
      'openai-version': '2020-10-01',
    }
    dropUpstreamLimits(headers)
    expect(headers).toEqual({
      'content-type': 'application/json',
      'retry-after': '2',
      'openai-version': '2020-10-01',
    })
  })
})

const KEY = 'tokensPerMinute:key:team-a'

describe('The windows of one process', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('count what fits, and nothing of what does not', () => {
    const windows = new MemoryWindows()
    expect(windows.add(KEY, 60, 100)).toMatchObject({ fits: true, counted: 60, used: 60, allowed: 100 })
    expect(windows.add(KEY, 41, 100)).toMatchObject({ fits: false, counted: 0, used: 60 })
    expect(windows.add(KEY, 40, 100)).toMatchObject({ fits: true, used: 100 })
    expect(windows.peek(KEY, 100)).toMatchObject({ used: 100, allowed: 100 })
    expect(windows.peek('tokensPerMinute:key:team-b', 100)).toBeUndefined()
  })

  it('begin with the first use and end a minute later', async () => {
    const windows = new MemoryWindows()
    windows.add(KEY, 100, 100)
    await jest.advanceTimersByTimeAsync(59_999)
    expect(windows.add(KEY, 1, 100)).toMatchObject({ fits: false })
    await jest.advanceTimersByTimeAsync(1)
    const next = windows.add(KEY, 1, 100)
    expect(next).toMatchObject({ fits: true, used: 1 })
    expect(next.endsAtMs - performance.now()).toBe(60_000)
  })

  it('take back into the window it came from, never into a later one', async () => {
    const windows = new MemoryWindows()
    const first = windows.add(KEY, 80, 100)
    expect(windows.giveBack(KEY, 50, 100, first.endsAtMs)).toMatchObject({ used: 30 })
    await jest.advanceTimersByTimeAsync(60_000)
    expect(windows.giveBack(KEY, 30, 100, first.endsAtMs)).toBeUndefined()
    const later = windows.add(KEY, 100, 100)
    expect(later).toMatchObject({ fits: true, used: 100 })
    expect(windows.giveBack(KEY, 30, 100, first.endsAtMs)).toBeUndefined()
    expect(windows.peek(KEY, 100)).toMatchObject({ used: 100 })
  })

  it('debit what was used already, whether it is left or not', () => {
    const windows = new MemoryWindows()
    expect(windows.debit(KEY, 150, 100)).toMatchObject({ used: 150, allowed: 100 })
    expect(windows.add(KEY, 1, 100)).toMatchObject({ fits: false, used: 150 })
  })

  it('go by the limit of each question, so that a changed one holds at once and keeps the count', () => {
    const windows = new MemoryWindows()
    windows.add(KEY, 60, 100)
    expect(windows.add(KEY, 1, 50)).toMatchObject({ fits: false, used: 60, allowed: 50 })
    expect(windows.add(KEY, 100, 200)).toMatchObject({ fits: true, used: 160 })
  })

  it('are forgotten once they are over, by the call that opens one, however many there were', () => {
    const windows = new MemoryWindows()
    for (let key = 0; key < 1000; key++) windows.add(`${KEY}-${key}`, 1, 100)
    jest.advanceTimersByTime(30_000)
    windows.add('later', 1, 100)
    expect(windows.size).toBe(1001)
    jest.advanceTimersByTime(30_000)
    windows.add(KEY, 1, 100)
    expect(windows.size).toBe(2)
  })

  it('keep to a share of each limit, of at least one', () => {
    const windows = new MemoryWindows(0.5)
    expect(windows.add(KEY, 50, 101)).toMatchObject({ fits: true, allowed: 50 })
    expect(windows.add(KEY, 1, 101)).toMatchObject({ fits: false })
    const small = new MemoryWindows(0.01)
    expect(small.add(KEY, 1, 10)).toMatchObject({ fits: true, allowed: 1 })
    expect(small.add(KEY, 1, 10)).toMatchObject({ fits: false })
  })

  it('give a whole share to what exceeds the share but not the limit', () => {
    const windows = new MemoryWindows(0.5)
    expect(windows.add(KEY, 80, 100)).toMatchObject({ fits: true, counted: 50, used: 50 })
    expect(windows.add(KEY, 80, 100)).toMatchObject({ fits: false, used: 50 })
  })

  it('never grant more than the limit, and are empty once everything is given back, in whatever order', () => {
    const step = fc.record({ points: fc.integer({ min: 1, max: 40 }), isBack: fc.boolean(), pick: fc.nat() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const windows = new MemoryWindows()
        const granted: { readonly points: number; readonly endsAtMs: number }[] = []
        const sum = (): number => granted.reduce((total, { points }) => total + points, 0)
        for (const { points, isBack, pick } of steps) {
          const [back] = isBack && granted.length > 0 ? granted.splice(pick % granted.length, 1) : []
          if (back !== undefined) windows.giveBack(KEY, back.points, 100, back.endsAtMs)
          else {
            const addition = windows.add(KEY, points, 100)
            expect(addition.fits).toBe(sum() + points <= 100)
            if (addition.fits) granted.push({ points, endsAtMs: addition.endsAtMs })
          }
          expect(windows.peek(KEY, 100)?.used ?? 0).toBe(sum())
        }
        for (const { points, endsAtMs } of granted) windows.giveBack(KEY, points, 100, endsAtMs)
        expect(windows.peek(KEY, 100)?.used ?? 0).toBe(0)
      }),
    )
  })
})
