import { describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import type { Admin, AdminAct } from './audit-log.js'
import { StrangerTrail } from './stranger-trail.js'

const refusal = (count: number, address = '192.0.2.1') => ({
  requestId: `req_${count}`,
  reason: 'unauthorized',
  method: 'GET',
  address,
})

/** What is written down, in order. */
function lab(windowMs: number) {
  const rows: object[] = []
  const note = (admin: Admin, act: AdminAct, outcome: string): Promise<void> => {
    rows.push({ ...admin, ...act, outcome })
    return Promise.resolve()
  }
  return { rows, strangers: new StrangerTrail({ note }, windowMs) }
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

describe('strangers at the administration', () => {
  it('leave the first refusal of a minute as it was, and of all others one row with their number', async () => {
    const { rows, strangers } = lab(60_000)
    for (let count = 0; count < 1000; count += 1) await strangers.note(refusal(count, `192.0.2.${count % 2}`))
    expect(rows).toEqual([first(0, '192.0.2.0')])
    await strangers.beforeApplicationShutdown()
    expect(rows.slice(1)).toEqual([sum(999, ['192.0.2.1', '192.0.2.0'], 60)])
  })

  it('are told as a number when the time is up, and begin anew then', async () => {
    const { rows, strangers } = lab(20)
    await strangers.note(refusal(0))
    await strangers.note(refusal(1))
    await eventually(() => rows.length === 2)
    await strangers.note(refusal(2))
    expect(rows).toEqual([first(0), sum(1, ['192.0.2.1'], 0.02), first(2)])
    await strangers.beforeApplicationShutdown()
  })

  it('leave no number where there was one of them', async () => {
    const { rows, strangers } = lab(60_000)
    await strangers.note(refusal(0))
    await strangers.beforeApplicationShutdown()
    await strangers.beforeApplicationShutdown()
    expect(rows).toEqual([first(0)])
  })

  it('are named by ten of their addresses at most', async () => {
    const { rows, strangers } = lab(60_000)
    for (let count = 0; count < 1000; count += 1) await strangers.note(refusal(count, `192.0.2.${count}`))
    await strangers.beforeApplicationShutdown()
    expect(rows).toHaveLength(2)
    expect(rows[1]).toMatchObject({ details: { refused: 999, addresses: { length: 10 } } })
  })
})
