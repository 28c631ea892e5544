import { describe, expect, it } from '@jest/globals'
import { MemoryBackgroundResponses } from '../../test/support/memory-background-responses.js'
import { ManualClock } from '../../test/support/task-lab.js'
import { CollectedUsage } from '../../test/support/task-rows.js'
import { GatewayError } from '../core/errors.js'
import { createLogging } from '../observability/logger.js'
import { BackgroundBilling } from './background-billing.js'
import type { BackgroundResponseRow } from './background-responses.js'

const STORE_AWAY = new GatewayError('overloaded', 'The database cannot be reached at the moment.')

/** A store that, while it can be reached, takes every row but one. */
class RefusingResponses extends MemoryBackgroundResponses {
  refusedId: string | undefined
  /** How many items each attempt to end a row was to pin, and whether it was to write a record. */
  readonly ends: (readonly [items: number, hasRecord: boolean])[] = []

  override end(...given: Parameters<MemoryBackgroundResponses['end']>): Promise<boolean> {
    const [, itemIds, record] = given
    this.ends.push([itemIds.length, record !== undefined])
    return super.end(...given)
  }

  override begin(row: BackgroundResponseRow): Promise<void> {
    const isRefused = this.failure === undefined && row.id === this.refusedId
    return isRefused ? Promise.reject(new Error('a fault')) : super.begin(row)
  }
}

/** A marker that is not on the disk before the test says so. */
class HeldMarker {
  done: () => void = () => undefined
  readonly remove = (): Promise<void> => Promise.resolve()

  readonly write = (): Promise<void> => new Promise((resolve) => (this.done = resolve))
}

function billingLab(marker: Pick<HeldMarker, 'write' | 'remove'>) {
  const rows = new RefusingResponses()
  const lines: string[] = []
  const { logger } = createLogging('info', { write: (line) => lines.push(line) })
  const billing = new BackgroundBilling(rows, new CollectedUsage(), new ManualClock(), marker, logger)
  const begin = (id: string): Promise<void> =>
    billing.begin({ ownerId: 'team-a', id, channelId: 'main', model: 'gpt-5-mini', route: '/v1/responses' })
  const log = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  return { rows, billing, begin, log }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('The bill of a response in the background', () => {
  it('is opened when the marker is on the disk, and the response has not begun before', async () => {
    const marker = new HeldMarker()
    const { rows, begin } = billingLab(marker)
    let hasBegun = false
    const begun = begin('resp_1').then(() => (hasBegun = true))
    await turn()
    expect([rows.begun, hasBegun]).toEqual([0, false])
    marker.done()
    await begun
    expect([rows.begun, rows.rows.size]).toEqual([1, 1])
  })

  it('that the store refuses is a line in the log, and keeps none behind it from being opened', async () => {
    const written = (): Promise<void> => Promise.resolve()
    const { rows, billing, begin, log } = billingLab({ write: written, remove: written })
    rows.failure = STORE_AWAY
    for (const id of ['resp_1', 'resp_2', 'resp_3']) await begin(id)
    rows.failure = undefined
    rows.refusedId = 'resp_2'
    await billing.writeUnwritten()
    expect([...rows.rows.values()].map(({ id }) => id)).toEqual(['resp_1', 'resp_3'])
    const msg = 'a background response could not be recorded: its use is not billed'
    expect(log().at(-1)).toMatchObject({ level: 50, msg, responseId: 'resp_2', err: { message: 'a fault' } })
    rows.refusedId = undefined
    await billing.writeUnwritten()
    expect(rows.rows.size).toBe(2)
  })

  const written = (): Promise<void> => Promise.resolve()

  it('is closed without its items where these cannot be written', async () => {
    const { rows, billing, begin } = billingLab({ write: written, remove: written })
    await begin('resp_1')
    rows.failureOfPins = new Error('a fault')
    await billing.settle(await rowOf(billing), { outcome: 'ok', usage: undefined, itemIds: ['msg_1'] })
    expect(rows.ends.at(-1)).toEqual([0, true])
    expect([rows.rows.size, rows.records.size]).toEqual([0, 1])
  })

  it('without items is not written a second time with its record where that fails', async () => {
    const { rows, billing, begin } = billingLab({ write: written, remove: written })
    await begin('resp_1')
    rows.failureOfEnd = new Error('a fault')
    const settled = billing.settle(await rowOf(billing), { outcome: 'ok', usage: undefined, itemIds: [] })
    await expect(settled).rejects.toThrow('a fault')
    expect(rows.ends).toEqual([
      [0, true],
      [0, false],
    ])
  })
})

async function rowOf(billing: BackgroundBilling): Promise<BackgroundResponseRow> {
  const row = await billing.find('team-a', 'resp_1')
  if (row === undefined) throw new Error('It was not begun.')
  return row
}
