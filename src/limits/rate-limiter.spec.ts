import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { heldBytes } from '../../test/support/held-memory.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { GatewayConfig } from '../config/settings.js'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'
import { Metrics } from '../observability/metrics.js'
import { CallEndings } from '../observability/request-hooks.js'
import { LimitScopes, OTHER_BEARERS } from './limit-scopes.js'
import { LimitGate } from './rate-limiter.js'

const MEGABYTE = 1_000_000
const INVENTED = 100_000

/** A gate as the gateway has it, and what it logs. */
function gateOf(settings: object) {
  const config = new ConfigStore(parseConfig(JSON.stringify(settings), {}))
  const endings = new CallEndings()
  const warnings: unknown[][] = []
  const logger = { info: () => undefined, warn: (...line: unknown[]) => void warnings.push(line) }
  const gate = new LimitGate(config, endings, new Metrics(), logger)
  return { gate, endings, warnings }
}

function begin(gate: LimitGate, caller: Caller): { readonly call: Call; readonly scope: string | undefined } {
  const call = new Call('req', 'POST', '/v1/chat/completions', performance.now())
  call.caller = caller
  try {
    expect(gate.begin(call)).toBe(true)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
  }
  return { call, scope: /scope=([^;]+)/.exec(call.answerHeaders['x-gateway-limit'] ?? '')?.[1] }
}

const invented = (index: number): Caller => ({ keyId: 'caller', bearer: `invented-${index}` })

describe('A hundred thousand invented bearers', () => {
  it('are counted in bounded memory, and those beyond ten thousand together', () => {
    const { gate, endings } = gateOf({
      auth: { defaultLimits: { requestsPerMinute: 5, tokensPerMinute: 1000, concurrency: 5 } },
    })
    const beforeBytes = heldBytes()
    const timersBefore = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const refused = new Map<string | undefined, number>()
    for (let index = 0; index < INVENTED; index++) {
      const { call, scope } = begin(gate, invented(index))
      refused.set(scope, (refused.get(scope) ?? 0) + 1)
      endings.over(call, { status: 200, left: false, totalMs: 1, gatewayMs: 1 })
    }
    expect(heldBytes() - beforeBytes).toBeLessThan(20 * MEGABYTE)
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length - timersBefore).toBeLessThan(10)
    expect(Object.fromEntries(refused)).toEqual({ undefined: 10_005, [OTHER_BEARERS]: INVENTED - 10_005 })
    // Who was there before has limits of its own still.
    expect(begin(gate, invented(0)).scope).toBeUndefined()
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

  it('stay with whoever comes at least once a minute, and have room again for others once somebody is idle', () => {
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
    const gate = new LimitGate(store, new CallEndings(), new Metrics(), logger)
    const caller = { keyId: 'stored' }
    const refusals = (): (string | undefined)[] => [1, 2].map(() => begin(gate, caller).scope)
    expect(refusals()).toEqual([undefined, 'key:stored'])
    await store.reload()
    expect([...refusals(), ...refusals()]).toEqual([undefined, undefined, 'key:stored', 'key:stored'])
  })
})

describe('A key that has no limits', () => {
  it('is not counted at all, though others have the defaults', () => {
    const { gate } = gateOf({ auth: { defaultLimits: { concurrency: 1 } } })
    const calls = [{}, {}, {}].map((limits) => begin(gate, { keyId: 'free', limits }).call)
    expect(calls.map(({ allowance, answerHeaders }) => [allowance, Object.keys(answerHeaders)])).toEqual(
      calls.map(() => [undefined, ['x-request-id']]),
    )
    expect(begin(gate, { keyId: 'team' }).call.allowance).toBeDefined()
  })
})

describe('Keys of the store that have limits', () => {
  const limits = { concurrency: 1 }

  it('are warned of once where several workers count each for itself', () => {
    const { gate, warnings } = gateOf({ server: { workers: 2 }, database: { url: 'postgres://db/gateway' } })
    begin(gate, { keyId: 'free' })
    begin(gate, { keyId: 'free', limits: {} })
    expect(warnings).toEqual([])
    begin(gate, { keyId: 'stored', limits })
    begin(gate, { keyId: 'other', limits })
    expect(warnings).toEqual([
      [{ keyId: 'stored', workers: 2 }, expect.stringMatching(/set redis\.url, or server\.workers to 1/)],
    ])
  })

  it('are not where one process counts', () => {
    const { gate, warnings } = gateOf({})
    begin(gate, { keyId: 'stored', limits })
    expect(warnings).toEqual([])
  })
})
