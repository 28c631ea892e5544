import { describe, expect, it } from '@jest/globals'
import { newCall } from '../../test/support/raw-upstream.js'
import { channelEntry, routingOf, type TestRouting } from '../../test/support/routing.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError, type GatewayErrorDetails } from '../core/errors.js'
import { clientDisconnected, type RequestContext } from '../core/request-context.js'
import { settleUsage } from '../core/usage.js'
import type { AttemptContext } from '../providers/contract.js'
import { RetryBudget } from './retry.js'

/** How many second attempts may begin now. */
function allowed(budget: RetryBudget): number {
  let count = 0
  while (budget.beginRetry()) count++
  return count
}

describe('RetryBudget', () => {
  it.each([
    [0, 3],
    [15, 3],
    [16, 4],
    [100, 20],
  ])('with %i active calls allows %i second attempts at a time', (active, retries) => {
    const budget = new RetryBudget()
    for (let call = 0; call < active; call++) budget.begin()
    expect(allowed(budget)).toBe(retries)
  })

  it('gives back what has ended', () => {
    const budget = new RetryBudget()
    for (let call = 0; call < 100; call++) budget.begin()
    expect(allowed(budget)).toBe(20)
    for (let call = 0; call < 100; call++) budget.end()
    expect(budget.beginRetry()).toBe(false)
    for (let retry = 0; retry < 19; retry++) budget.endRetry()
    expect(allowed(budget)).toBe(2)
  })
})

const CALLER = { keyId: 'test' }
const TWO = { channels: [channelEntry('a'), channelEntry('b', { priority: 1 }), channelEntry('c', { priority: 2 })] }

const failure = (details: GatewayErrorDetails): GatewayError => new GatewayError('upstream_failed', 'failed', details)
const UNSENT = failure({ attempt: { phase: 'unsent', channelError: true } })
const SENT = failure({ attempt: { phase: 'sent', channelError: true } })
const ANSWERED = failure({ attempt: { phase: 'answered', channelError: true } })
const CALLERS = new GatewayError('invalid_request', 'bad', { attempt: { phase: 'answered' } })

interface Outcome {
  readonly tried: string[]
  readonly result?: string
  readonly error?: unknown
  readonly contexts: AttemptContext[]
}

/** Runs a call whose attempts fail with the given errors in turn, and then succeed. */
async function outcomeOf(
  { router }: TestRouting,
  errors: readonly (Error | undefined)[],
  {
    canRetryAfterSend = true,
    call = newCall(),
    model = 'gpt-4o-mini',
  }: {
    canRetryAfterSend?: boolean
    call?: RequestContext
    model?: string
  } = {},
): Promise<Outcome> {
  const contexts: AttemptContext[] = []
  const tried: string[] = []
  const run = (_provider: unknown, context: AttemptContext): Promise<string> => {
    contexts.push(context)
    tried.push(context.channelId)
    const error = errors[tried.length - 1]
    return error === undefined ? Promise.resolve('done') : Promise.reject(error)
  }
  try {
    const result = await router.route('chat', model, CALLER).attempt(call, { canRetryAfterSend }, run)
    return { tried, result, contexts }
  } catch (error) {
    return { tried, error, contexts }
  }
}

describe('A routed call', () => {
  it('is tried once when it succeeds, and says where it went', async () => {
    const call = newCall()
    const { tried, result, contexts } = await outcomeOf(routingOf(TWO), [], { call })
    expect([tried, result]).toEqual([['a'], 'done'])
    expect(call.log).toMatchObject({ attempts: [{ channelId: 'a' }], channelId: 'a' })
    expect(contexts[0]?.disconnect).toBe(call.disconnect)
    expect(contexts[0]?.record).toBe(call.log.attempts[0])
    expect(contexts[0]).toMatchObject({
      requestId: call.requestId,
      channelId: 'a',
      credentials: 'secret-of-a',
      callersKey: false,
      upstreamModel: 'gpt-4o-mini',
    })
  })

  it.each([
    ['nothing was sent', UNSENT],
    ['the upstream failed', ANSWERED],
    ['there was no answer, where that is harmless', SENT],
  ])('is tried on one other channel when %s', async (_name, error) => {
    const call = newCall()
    expect(await outcomeOf(routingOf(TWO), [error], { call })).toMatchObject({ tried: ['a', 'b'], result: 'done' })
    expect(call.log).toMatchObject({
      attempts: [{ channelId: 'a', failure: 'upstream_failed' }, { channelId: 'b' }],
      channelId: 'b',
    })
  })

  it('is tried at most twice, never on a channel that was tried, and fails with the last failure', async () => {
    const last = failure({ attempt: { phase: 'unsent', channelError: true } })
    expect(await outcomeOf(routingOf(TWO), [UNSENT, last, UNSENT])).toMatchObject({ tried: ['a', 'b'], error: last })
    const alone = routingOf({ channels: [channelEntry('a')] })
    expect(await outcomeOf(alone, [UNSENT, UNSENT])).toMatchObject({ tried: ['a'], error: UNSENT })
  })

  it('is not repeated where it may have been done, unless nothing was sent or it was refused', async () => {
    const once = { canRetryAfterSend: false }
    expect(await outcomeOf(routingOf(TWO), [SENT], once)).toMatchObject({ tried: ['a'], error: SENT })
    expect(await outcomeOf(routingOf(TWO), [UNSENT], once)).toMatchObject({ tried: ['a', 'b'] })
    expect(await outcomeOf(routingOf(TWO), [ANSWERED], once)).toMatchObject({ tried: ['a', 'b'] })
  })

  it.each([
    ['a fault of the caller', CALLERS],
    ['a refusal before any attempt', new GatewayError('invalid_request', 'bad')],
    ['a bug', new TypeError('bug')],
  ])('is not repeated after %s, and the channel is not blamed', async (_name, error) => {
    const routing = routingOf(TWO)
    expect(await outcomeOf(routing, [error])).toMatchObject({ tried: ['a'], error })
    expect(routing.health.stateOf('a')).toBe('closed')
  })

  it('is not repeated for a caller who has left, and the channel is not blamed for that', async () => {
    const left = newCall()
    left.disconnect.abort()
    expect(await outcomeOf(routingOf(TWO), [UNSENT], { call: left })).toMatchObject({ tried: ['a'], error: UNSENT })
    const routing = routingOf(TWO)
    const gone = new GatewayError('caller_left', 'gone')
    expect(await outcomeOf(routing, [gone])).toMatchObject({ tried: ['a'], error: gone })
    expect(routing.health.stateOf('a')).toBe('closed')
  })

  it('has one deadline for both attempts, and none is begun behind it, nor where hardly anything is left', async () => {
    const { contexts } = await outcomeOf(routingOf({ ...TWO, timeouts: { totalMs: 1000 } }), [UNSENT])
    expect(contexts).toHaveLength(2)
    expect(contexts[1]?.deadlineAtMs).toBe(contexts[0]?.deadlineAtMs)
    const routing = routingOf({ ...TWO, timeouts: { totalMs: 8 } })
    let tried = 0
    const attempt = routing.router
      .route('chat', 'gpt-4o-mini', CALLER)
      .attempt(newCall(), { canRetryAfterSend: true }, (_, context) => {
        tried++
        while (performance.now() < context.deadlineAtMs - 5);
        return Promise.reject(SENT)
      })
    await expect(attempt).rejects.toBe(SENT)
    expect(tried).toBe(1)
  })
})

describe('What an attempt has learned', () => {
  const WORKED = { reportedUsage: undefined, estimate: () => ({ units: { prompt_tokens: 9 }, estimated: true }) }

  /** A first attempt that answers with a failure, after which the run does what it is told. */
  async function routed(run: (context: AttemptContext) => Promise<unknown>): Promise<RequestContext['log']> {
    const call = newCall()
    let attempts = 0
    const { router } = routingOf(TWO)
    const attempt = (_provider: unknown, context: AttemptContext): Promise<unknown> => {
      context.record.upstreamMs = 5
      if (attempts++ > 0) return run(context)
      Object.assign(context.record, { firstByteMs: 4, upstreamStatus: 503, upstreamRequestId: 'one', usage: WORKED })
      return Promise.reject(ANSWERED)
    }
    const route = router.route('chat', 'gpt-4o-mini', CALLER)
    await route.attempt(call, { canRetryAfterSend: true }, attempt).catch(() => undefined)
    return call.log
  }

  it('becomes a part of the log of its request: times are added up, and what the last one knows counts', async () => {
    const log = await routed((context) => {
      context.record.upstreamStatus = 200
      return Promise.resolve('done')
    })
    expect(log).toMatchObject({ upstreamMs: 10, firstByteMs: 4, upstreamStatus: 200, upstreamRequestId: 'one' })
    expect(log.attempts.map(({ channelId, upstreamStatus }) => [channelId, upstreamStatus])).toEqual([
      ['a', 503],
      ['b', 200],
    ])
  })

  it('goes on when its answer has begun', async () => {
    let record: AttemptContext['record'] | undefined
    const log = await routed((context) => {
      record = context.record
      record.openWaitMs = 3
      return Promise.resolve('begun')
    })
    expect(log).toMatchObject({ upstreamMs: 10, openWaitMs: 3 })
    Object.assign(record ?? {}, { openWaitMs: 0, upstreamMs: 20 })
    expect(log).toMatchObject({ upstreamMs: 25, openWaitMs: 0 })
  })

  it('is the usage of the answer that was given', async () => {
    const usage = { reportedUsage: { units: { prompt_tokens: 3 }, estimated: false } }
    const log = await routed(() => Promise.resolve(new ProviderResponse(200, {}, Buffer.from('{}'), usage)))
    expect(log.usageReader).toBe(usage)
  })

  it('is no usage where nothing was given, unless the caller left while the upstream worked', async () => {
    expect((await routed(() => Promise.reject(ANSWERED))).usageReader).toBeUndefined()
    const log = await routed((context) => {
      context.record.usage = WORKED
      return Promise.reject(clientDisconnected())
    })
    expect(log.usageReader).toBe(WORKED)
    settleUsage(log, false)
    expect(log.usage).toEqual({ units: { prompt_tokens: 9 }, estimated: true })
  })
})

describe('The breaker of a channel', () => {
  it('opens at the third failure in a row, and the channel is spared until it works again', async () => {
    const routing = routingOf(TWO)
    for (const tried of [
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'b'],
    ])
      expect((await outcomeOf(routing, [UNSENT])).tried).toEqual(tried)
    expect((await outcomeOf(routing, [])).tried).toEqual(['b'])
    for (const other of ['b', 'c']) routing.health.open(other, 60_000)
    expect((await outcomeOf(routing, [])).tried).toEqual(['a'])
    expect(routing.health.stateOf('a')).toBe('closed')
  })

  it('lets one call probe, also of those that were routed before the probe began', async () => {
    const { router, health } = routingOf(TWO)
    health.open('a', 0)
    const routes = [1, 2, 3].map(() => router.route('chat', 'gpt-4o-mini', CALLER))
    const tried: string[] = []
    const run = async (_provider: unknown, { channelId }: AttemptContext): Promise<void> => {
      tried.push(channelId)
      await Promise.resolve()
    }
    await Promise.all(routes.map((route) => route.attempt(newCall(), { canRetryAfterSend: true }, run)))
    expect(tried).toEqual(['a', 'b', 'b'])
  })

  it('stays as it is when the configuration is read anew', async () => {
    const routing = routingOf(TWO, TWO)
    for (const error of [UNSENT, UNSENT, UNSENT]) await outcomeOf(routing, [error])
    expect(await routing.store.reload()).toMatchObject({ applied: true })
    expect((await outcomeOf(routing, [])).tried).toEqual(['b'])
    expect(routing.health.snapshot()).toMatchObject([
      { channelId: 'a', state: 'open', consecutiveFailures: 3, waiting: 0, latencyMs: undefined },
      { channelId: 'b', state: 'closed', consecutiveFailures: 0, openForMs: 0, latencyMs: expect.any(Number) },
      { channelId: 'c', state: 'closed', latencyMs: undefined },
    ])
  })

  it('counts failures in a row only', async () => {
    const routing = routingOf(TWO)
    for (const error of [UNSENT, UNSENT, undefined, UNSENT, UNSENT]) await outcomeOf(routing, [error])
    expect(routing.health.stateOf('a')).toBe('closed')
  })

  it.each([
    ['of a busy upstream is open at once, for as long as it asks', { retryAfterSeconds: 7, ...ANSWERED.details }, 7000],
    ['of a refused key is open at once, for a minute', { ...ANSWERED.details, retryable: false }, 60_000],
    ['of any other fault waits for more', ANSWERED.details, undefined],
    ['of a cut answer waits for more', { ...SENT.details, retryable: false }, undefined],
  ])('%s', async (_name, details, openMs) => {
    const routing = routingOf(TWO)
    const startedAtMs = performance.now()
    await outcomeOf(routing, [failure(details)])
    expect(routing.health.stateOf('a')).toBe(openMs === undefined ? 'closed' : 'open')
    if (openMs === undefined) return
    const lastsMs = routing.health.openUntilMs('a') - startedAtMs
    expect(Math.round(lastsMs / 1000)).toBe(openMs / 1000)
  })
})
