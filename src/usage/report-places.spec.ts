import { beforeEach, describe, expect, it } from '@jest/globals'
import { callerWithOwnBearer } from '../core/caller.js'
import { ownerOf } from '../core/owner.js'
import { ReportPlaces } from './report-places.js'

const BUSY = { kind: 'overloaded', details: { retryAfterSeconds: 1 } }

const stranger = (bearer: string): string => ownerOf(callerWithOwnBearer(bearer))

let places: ReportPlaces
let ends: (() => void)[]
beforeEach(() => {
  places = new ReportPlaces()
  ends = []
})

const report = (ownerId: string | undefined, callersAtOnce = 2): Promise<void> =>
  places.during(ownerId, callersAtOnce, () => new Promise<void>((resolve) => ends.push(resolve)))

describe('The places of reports', () => {
  it('are never all with callers of bearers of their own, however many they invent', async () => {
    const strangers = Promise.allSettled(['one', 'one', 'two', 'three'].map((bearer) => report(stranger(bearer))))
    const known = report('team-a')
    for (const end of ends) end()
    await expect(known).resolves.toBeUndefined()
    const [first, ...others] = await strangers
    expect(first).toMatchObject({ status: 'fulfilled' })
    for (const other of others) expect(other).toMatchObject({ status: 'rejected', reason: BUSY })
  })

  it('are free for the next of them when the one before is done, also where its work failed', async () => {
    await expect(places.during(stranger('one'), 2, () => Promise.reject(new Error('away')))).rejects.toThrow('away')
    const next = report(stranger('two'))
    expect(ends).toHaveLength(1)
    ends[0]?.()
    await next
    const last = report(stranger('three'), 1)
    ends[1]?.()
    await expect(last).resolves.toBeUndefined()
  })

  it('are told apart by key, and no key is taken for a bearer', async () => {
    const underWay = ['bearer', 'team-a'].map((id) => report(id))
    expect(ends).toHaveLength(2)
    await expect(report(stranger('one'))).rejects.toMatchObject(BUSY)
    for (const end of ends) end()
    await Promise.all(underWay)
  })
})
