import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseConfig } from '../../test/support/config.js'
import { eventually } from '../../test/support/eventually.js'
import { ConfigError } from '../config/faults.js'
import { GatewayError } from '../core/errors.js'
import { FailedAttemptLog } from './admin.guard.js'
import {
  type Admin,
  type AuditedAction,
  AuditRepository,
  AuditLog,
  type AuditEntry,
  type AuditOutcome,
} from './audit-log.js'
import { keyId, keyLimits, LIMIT_RULES, modelGlobs } from './keys.dto.js'

describe('The trail of an operator', () => {
  const ADMIN = { actor: 'admin-01234567', requestId: 'req_1' }
  const KEY = 'a-key-of-a-team'
  const ACT = { action: 'keys.revoke', target: 'a', details: { why: 'x' } }

  /** What is in the log, and in the audit log while that can be written. */
  function lab({ isWritable = true } = {}) {
    const rows: AuditEntry[] = []
    const lines: unknown[] = []
    const away = (): GatewayError => new GatewayError('overloaded', 'The database cannot be reached.')
    class FakeAudit extends AuditRepository {
      isWritable = isWritable
      override record(entry: AuditEntry): Promise<number> {
        return this.isWritable ? Promise.resolve(rows.push(entry) - 1) : Promise.reject(away())
      }
      override recordOutcome(sequence: number, outcome: AuditOutcome): Promise<void> {
        const row = rows[sequence]
        if (!this.isWritable || row === undefined) return Promise.reject(away())
        rows[sequence] = { ...row, outcome }
        return Promise.resolve()
      }
      override page = (): Promise<never> => Promise.reject(away())
      override prune = (): Promise<never> => Promise.reject(away())
    }
    const audit = new FakeAudit()
    const log = (...words: unknown[]): void => void lines.push(words)
    return {
      audit,
      rows,
      lines,
      trail: new AuditLog(audit, { knows: (text) => text === KEY }, { info: log, warn: log }),
    }
  }

  it('holds a change before it is made, and its end afterwards', async () => {
    const { trail, rows, lines } = lab()
    const seen = await trail.change(ADMIN, ACT, () => rows.map(({ outcome }) => outcome))
    expect(seen).toEqual(['begun'])
    expect(rows).toEqual([{ ...ADMIN, ...ACT, atMs: expect.any(Number), outcome: 'done' }])
    expect(lines).toEqual([[{ ...ADMIN, ...ACT, outcome: 'done' }, 'audit']])
  })

  it('shows no key that was typed as the name of something, however deep', async () => {
    const { trail, rows, lines } = lab()
    const details = { models: ['gpt-4o', KEY, [`Bearer ${KEY}`]] }
    await trail.change(ADMIN, { ...ACT, target: KEY, details }, () => undefined)
    expect(rows).toMatchObject([{ target: '[key]', details: { models: ['gpt-4o', '[key]', ['[key]']] } }])
    expect(JSON.stringify([rows, lines])).not.toContain(KEY)
  })

  it('keeps a change from being made that cannot be written down', async () => {
    const { trail } = lab({ isWritable: false })
    let isMade = false
    const change = trail.change(ADMIN, ACT, () => {
      isMade = true
    })
    await expect(change).rejects.toMatchObject({ kind: 'overloaded' })
    expect(isMade).toBe(false)
  })

  it('does not undo a change because its end cannot be written down', async () => {
    const { trail, audit, rows, lines } = lab()
    const made = await trail.change(ADMIN, ACT, () => {
      audit.isWritable = false
      return 'made'
    })
    expect(made).toBe('made')
    expect(rows).toMatchObject([{ outcome: 'begun' }])
    expect(lines).toHaveLength(2)
  })

  it.each([
    [new GatewayError('conflict', 'taken'), 'refused'],
    [new GatewayError('overloaded', 'away'), 'failed'],
    [new Error('bug'), 'failed'],
  ])('tells whether a change was refused or failed: %s', async (error, outcome) => {
    const { trail, rows } = lab()
    await expect(trail.change(ADMIN, ACT, () => Promise.reject(error))).rejects.toBe(error)
    await expect(trail.read(ADMIN, ACT, () => Promise.reject(error))).rejects.toBe(error)
    expect(rows.map((row) => row.outcome)).toEqual([outcome, outcome])
  })

  it('lets an operator who only looks go on when that cannot be written down', async () => {
    const { trail, lines } = lab({ isWritable: false })
    expect(await trail.read(ADMIN, ACT, () => 'seen')).toBe('seen')
    await eventually(() => lines.length === 2)
    expect(lines).toMatchObject([
      [{ outcome: 'done' }, 'audit'],
      [{}, 'the audit log cannot be written'],
    ])
  })
})

describe('strangers at the administration', () => {
  const refusal = (count: number, address = '192.0.2.1') => ({
    requestId: `req_${count}`,
    reason: 'unauthorized',
    method: 'GET',
    address,
  })

  /** What is written down, in order. */
  function lab(windowMs: number) {
    const rows: object[] = []
    const note = (admin: Admin, act: AuditedAction, outcome: string): Promise<void> => {
      rows.push({ ...admin, ...act, outcome })
      return Promise.resolve()
    }
    return { rows, strangers: new FailedAttemptLog({ record: note }, windowMs) }
  }

  const first = (count: number, address = '192.0.2.1') => ({
    actor: '-',
    requestId: `req_${count}`,
    action: 'authorize',
    details: { reason: 'unauthorized', method: 'GET', address },
    outcome: 'refused',
  })
  const sum = (refused: number, addresses: readonly string[], seconds: number) => ({
    actor: '-',
    requestId: '-',
    action: 'authorize',
    details: { refused, seconds, addresses },
    outcome: 'refused',
  })

  it('leave the first refusal of a minute as it was, and of all others one row with their number', async () => {
    const { rows, strangers } = lab(60_000)
    for (let count = 0; count < 1000; count += 1) await strangers.record(refusal(count, `192.0.2.${count % 2}`))
    expect(rows).toEqual([first(0, '192.0.2.0')])
    await strangers.beforeApplicationShutdown()
    expect(rows.slice(1)).toEqual([sum(999, ['192.0.2.1', '192.0.2.0'], 60)])
  })

  it('are told as a number when the time is up, and begin anew then', async () => {
    const { rows, strangers } = lab(20)
    await strangers.record(refusal(0))
    await strangers.record(refusal(1))
    await eventually(() => rows.length === 2)
    await strangers.record(refusal(2))
    expect(rows).toEqual([first(0), sum(1, ['192.0.2.1'], 0.02), first(2)])
    await strangers.beforeApplicationShutdown()
  })

  it('leave no number where there was one of them', async () => {
    const { rows, strangers } = lab(60_000)
    await strangers.record(refusal(0))
    await strangers.beforeApplicationShutdown()
    await strangers.beforeApplicationShutdown()
    expect(rows).toEqual([first(0)])
  })

  it('are named by ten of their addresses at most', async () => {
    const { rows, strangers } = lab(60_000)
    for (let count = 0; count < 1000; count += 1) await strangers.record(refusal(count, `192.0.2.${count}`))
    await strangers.beforeApplicationShutdown()
    expect(rows).toHaveLength(2)
    expect(rows[1]).toMatchObject({ details: { refused: 999, addresses: { length: 10 } } })
  })
})

/** Whether the configuration file takes a key with these settings. */
function isConfigurable(settings: object): boolean {
  try {
    parseConfig(JSON.stringify({ auth: { keys: [{ id: 'a', key: 'k', ...settings }] } }), {})
    return true
  } catch (error) {
    if (error instanceof ConfigError) return false
    throw error
  }
}

const NAMES = Object.keys(LIMIT_RULES)

describe('The fields of an issued key', () => {
  it.each(NAMES)('take the same numbers for the limit %s as the configuration file', (name) => {
    for (const limit of [-1, 0, 1, 1.5, 1_000_000, 1_000_001, 1_000_000_000, 1_000_000_001, true, {}]) {
      const limits = { [name]: limit }
      expect([limit, keyLimits(limits, 'limits') === undefined]).toEqual([limit, isConfigurable({ limits })])
    }
  })

  it('know the same limits', () => {
    expect(isConfigurable({ limits: Object.fromEntries(NAMES.map((name) => [name, 1])) })).toBe(true)
    expect(keyLimits({ constructor: 1 }, 'limits')).toMatchObject({ code: 'unknown_parameter' })
    for (const name of ['tokensPerHour', 'requests']) expect(isConfigurable({ limits: { [name]: 1 } })).toBe(false)
  })

  it('take the same ids and globs', () => {
    for (const id of ['-', 'caller'])
      expect([keyId(id, 'id') === undefined, isConfigurable({ id })]).toEqual([false, false])
    const text = fc.string({ unit: fc.constantFrom('a', 'Z', '0', '.', '_', '-', '*', '?', '[', ' ', 'ü', '\n', "'") })
    fc.assert(
      fc.property(text, (word) => {
        expect(keyId(word, 'id') === undefined).toBe(isConfigurable({ id: word }))
        expect(modelGlobs([word], 'models') === undefined).toBe(isConfigurable({ models: [word] }))
      }),
    )
  })
})
