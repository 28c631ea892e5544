import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away } from '../../test/support/memory-usage.js'
import { idsOf, records, type UsageWriterLab, usageWriterLab } from '../../test/support/usage-writer-lab.js'

/** As many as wait while a store is away for minutes. */
const MANY = 20_000

let lab: UsageWriterLab

async function begin(usage: object = {}): Promise<void> {
  await lab.close()
  lab = await usageWriterLab(usage)
}

beforeEach(async () => {
  lab = await usageWriterLab()
})
afterEach(() => lab.close())

describe('What was used', () => {
  it('is all written before the end, and what comes after it, too', async () => {
    await begin({ batchRows: 4 })
    const { writer, written, logged, spilled } = lab
    const many = records(11)
    writer.add(many)
    await writer.stop()
    expect(written()).toEqual(idsOf(many))
    const late = records(1)
    writer.add(late)
    writer.begin()
    await eventually(() => written().length === 12)
    expect([logged(), await spilled()]).toEqual([[], []])
  })

  it('is in a file when the store is away at the end', async () => {
    const { writer, store, written, logged, spilled, metric } = lab
    store.before = away
    const many = records(3)
    writer.add(many)
    writer.begin()
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    expect(await spilled()).toEqual(idsOf(many))
    expect([written(), logged(), await metric('gateway_usage_dropped_total')]).toEqual([[], [], 0])
  })

  it('is in a file once, what comes late as well, however much it is and whatever the log tells', async () => {
    const { writer, store, logger, spilled } = lab
    logger.level = 'silent'
    store.before = away
    const many = records(MANY)
    writer.add(many)
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    const late = records(2)
    writer.add(late)
    writer.begin()
    await eventually(async () => (await spilled()).length > MANY)
    expect(await spilled()).toEqual(idsOf([...many, ...late]))
  })

  it('is not waited for by an end that has waited for a silent store', async () => {
    const { writer, store, spilled } = lab
    let answer = (): void => undefined
    store.before = () =>
      new Promise<void>((resolve) => {
        answer = resolve
      })
    const many = records(3)
    writer.add(many)
    writer.begin()
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    expect(await spilled()).toEqual(idsOf(many))
    store.before = away
    answer()
    writer.add(records(1))
    writer.begin()
    await eventually(async () => (await spilled()).length === 4)
  })

  it('is in a file when the process ends without a word', async () => {
    const { writer, store, spilled } = lab
    store.before = () => new Promise<void>(() => undefined)
    const many = records(1200)
    writer.add(many)
    await eventually(() => store.batches.length > 0)
    writer.keepRest()
    expect(await spilled()).toEqual(idsOf(many))
  })
})
