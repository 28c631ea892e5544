import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away, idsOf, records, type UsageWriterLab, usageWriterLab } from '../../test/support/usage-writer-lab.js'

/** As many as wait during an outage of minutes. */
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
    const { writer, written, logged, buffered } = lab
    const many = records(11)
    writer.add(many)
    await writer.stop()
    expect(written()).toEqual(idsOf(many))
    const late = records(1)
    writer.add(late)
    writer.startWriting()
    await eventually(() => written().length === 12)
    expect([logged(), await buffered()]).toEqual([[], []])
  })

  it('is in a file when the store is away at the end', async () => {
    const { writer, store, written, logged, buffered, metric } = lab
    store.before = away
    const many = records(3)
    writer.add(many)
    writer.startWriting()
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    expect(await buffered()).toEqual(idsOf(many))
    expect([written(), logged(), await metric('gateway_usage_dropped_total')]).toEqual([[], [], 0])
  })

  it('is in a file once, what comes late as well, however much it is and whatever the log tells', async () => {
    const { writer, store, logger, buffered } = lab
    logger.level = 'silent'
    store.before = away
    const many = records(MANY)
    writer.add(many)
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    const late = records(2)
    writer.add(late)
    writer.startWriting()
    await eventually(async () => (await buffered()).length > MANY)
    expect(await buffered()).toEqual(idsOf([...many, ...late]))
  })

  it('is not waited for by an end that has waited for a silent store', async () => {
    const { writer, store, buffered } = lab
    let answer = (): void => undefined
    store.before = () =>
      new Promise<void>((resolve) => {
        answer = resolve
      })
    const many = records(3)
    writer.add(many)
    writer.startWriting()
    await eventually(() => store.batches.length > 0)
    await writer.stop()
    expect(await buffered()).toEqual(idsOf(many))
    store.before = away
    answer()
    writer.add(records(1))
    writer.startWriting()
    await eventually(async () => (await buffered()).length === 4)
  })

  it('is in a file when the process ends without a word', async () => {
    const { writer, store, buffered } = lab
    store.before = () => new Promise<void>(() => undefined)
    const many = records(1200)
    writer.add(many)
    await eventually(() => store.batches.length > 0)
    writer.persistRemaining()
    expect(await buffered()).toEqual(idsOf(many))
  })

  it('is written when a batch is full, or when the queue says that it is time', async () => {
    await begin({ batchRows: 10 })
    const { writer, store, written, metric } = lab
    const some = records(9)
    writer.add(some)
    expect(store.batches).toEqual([])
    writer.startWriting()
    await eventually(() => written().length === 9)
    const many = records(25)
    writer.add(many)
    await eventually(() => written().length === 34)
    expect(store.batches.map((batch) => batch.length)).toEqual([9, 10, 10, 5])
    expect(written()).toEqual(idsOf([...some, ...many]))
    expect(await metric('gateway_usage_queue_rows')).toBe(0)
  })

  it('waits for a store that is away, and is there once although an answer was lost', async () => {
    const { writer, store, written, logged, metric } = lab
    const some = records(3)
    let failures = 0
    store.before = () => (failures++ < 1 ? away() : undefined)
    store.after = () => (failures < 3 ? away() : undefined)
    writer.add(some)
    writer.startWriting()
    await eventually(() => store.batches.length > 0)
    expect(await metric('gateway_usage_queue_rows')).toBe(3)
    const later = records(2)
    writer.add(later)
    await eventually(() => written().length === 5)
    expect(written()).toEqual(idsOf([...some, ...later]))
    expect(store.batches.filter((batch) => batch[0]?.id === some[0]?.id)).toHaveLength(3)
    expect(logged()).toEqual([])
  })

  it('waits in a file, the oldest first, when too much of it waits', async () => {
    await begin({ queueRows: 5, batchRows: 2 })
    const { writer, store, written, logged, buffered, metric } = lab
    store.before = away
    const first = records(2)
    writer.add(first)
    await eventually(() => store.batches.length === 1)
    const many = records(8)
    for (const record of many) writer.add([record])
    expect(await metric('gateway_usage_queue_rows')).toBe(10)
    await eventually(async () => (await metric('gateway_usage_queue_rows')) === 7)
    expect(await buffered()).toEqual(idsOf(many.slice(0, 3)))
    store.before = () => undefined
    await eventually(() => written().length === 10)
    expect(written()).toEqual(idsOf([...first, ...many.slice(3), ...many.slice(0, 3)]))
    expect([logged(), await metric('gateway_usage_dropped_total')]).toEqual([[], 0])
  })
})

describe('Where no store is configured', () => {
  beforeEach(async () => {
    await begin({ store: undefined, batchRows: 2, queueRows: 5 })
  })

  it('what was used waits until something else opens it', async () => {
    const { writer, store, database, written } = lab
    const some = records(4)
    writer.add(some)
    writer.startWriting()
    expect([store.opened, store.batches]).toEqual([0, []])
    await database.open()
    await eventually(() => written().length === 4)
    expect(written()).toEqual(idsOf(some))
  })

  it('a caller who asks for reports opens it, and finds what was used before', async () => {
    const { writer, store, written } = lab
    const some = records(4)
    writer.add(some)
    await writer.flush()
    expect(store.opened).toBe(1)
    expect(written()).toEqual(idsOf(some))
  })

  it('only the newest is kept, which is said once, and is no loss that is counted', async () => {
    const { writer, lines, written, metric } = lab
    const many = records(12)
    for (const record of many) writer.add([record])
    expect(lines.map(({ msg }) => msg)).toEqual(['usage is not stored here: the oldest records are forgotten'])
    expect(await metric('gateway_usage_dropped_total')).toBe(0)
    await writer.flush()
    expect(written()).toEqual(idsOf(many.slice(7)))
  })

  it('nothing is opened at the end, and what waits is in a file', async () => {
    const { writer, store, lines, logged, buffered, metric } = lab
    const some = records(4)
    writer.add(some)
    await writer.stop()
    expect([store.opened, store.batches, logged(), await buffered()]).toEqual([0, [], [], idsOf(some)])
    expect(lines).toMatchObject([{ level: 30, rows: 4, msg: 'usage waits in a file for the next start' }])
    expect(await metric('gateway_usage_dropped_total')).toBe(0)
  })
})

describe('Where usage is not to be stored', () => {
  it('nothing is written, although a report opened the store', async () => {
    await begin({ store: false, batchRows: 1 })
    const { writer, store, database, buffered, metric } = lab
    writer.add(records(3))
    writer.persistRemaining()
    await database.open()
    await writer.stop()
    expect([store.batches, await buffered()]).toEqual([[], []])
    expect(await metric('gateway_usage_queue_rows')).toBe(0)
  })
})
