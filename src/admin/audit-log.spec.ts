import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { GatewayError } from '../core/gateway-error.js'
import { AdminAuditRepository, type AuditEntry, type AuditOutcome } from './admin-audit.repository.js'
import { AdminTrail } from './audit-log.js'

const ADMIN = { actor: 'admin-01234567', requestId: 'req_1' }
const ACT = { action: 'keys.revoke', target: 'a', details: { why: 'x' } }

/** What is in the log, and in the audit log while that can be written. */
function lab({ isWritable = true } = {}) {
  const rows: AuditEntry[] = []
  const lines: unknown[] = []
  const away = (): GatewayError => new GatewayError('overloaded', 'The database cannot be reached.')
  class FakeAudit extends AdminAuditRepository {
    isWritable = isWritable
    override record(entry: AuditEntry): Promise<number> {
      return this.isWritable ? Promise.resolve(rows.push(entry) - 1) : Promise.reject(away())
    }
    override settle(sequence: number, outcome: AuditOutcome): Promise<void> {
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
  return { audit, rows, lines, trail: new AdminTrail(audit, { info: log, warn: log }) }
}

describe('The trail of an operator', () => {
  it('holds a change before it is made, and its end afterwards', async () => {
    const { trail, rows, lines } = lab()
    const seen = await trail.change(ADMIN, ACT, () => rows.map(({ outcome }) => outcome))
    expect(seen).toEqual(['begun'])
    expect(rows).toEqual([{ ...ADMIN, ...ACT, atMs: expect.any(Number), outcome: 'done' }])
    expect(lines).toEqual([[{ ...ADMIN, ...ACT, outcome: 'done' }, 'audit']])
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
    await expect(trail.look(ADMIN, ACT, () => Promise.reject(error))).rejects.toBe(error)
    expect(rows.map((row) => row.outcome)).toEqual([outcome, outcome])
  })

  it('lets whoever only looks go on when that cannot be written down', async () => {
    const { trail, lines } = lab({ isWritable: false })
    expect(await trail.look(ADMIN, ACT, () => 'seen')).toBe('seen')
    await eventually(() => lines.length === 2)
    expect(lines).toMatchObject([
      [{ outcome: 'done' }, 'audit'],
      [{}, 'the audit log cannot be written'],
    ])
  })
})
