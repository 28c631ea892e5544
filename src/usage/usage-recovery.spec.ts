import { appendFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away } from '../../test/support/memory-usage.js'
import { idsOf, records, spillFiles, type UsageWriterLab, usageWriterLab } from '../../test/support/usage-writer-lab.js'
import { UsageRecovery } from './disk-buffer-recovery.js'
import { SpillFolder } from './disk-buffer.js'
import { spilledRow } from './spilled-row.js'

let lab: UsageWriterLab
let recovery: UsageRecovery

async function begin(usage: object = {}): Promise<void> {
  await lab.close()
  lab = await usageWriterLab(usage)
  recovery = recoveryOf(lab)
}

function recoveryOf({ store, database, config, folder, lost, logger }: UsageWriterLab): UsageRecovery {
  const made = new UsageRecovery(store, database, config, folder, lost, logger)
  made.onModuleInit()
  return made
}

async function end(): Promise<void> {
  recovery.onModuleDestroy()
  await recovery.beforeApplicationShutdown()
}

beforeEach(async () => {
  lab = await usageWriterLab({ batchRows: 100 })
  recovery = recoveryOf(lab)
})
afterEach(async () => {
  await end()
  await lab.close()
})

const files = (): Promise<string[]> => readdir(lab.folder.path)
const said = (): unknown[] => lab.lines.map(({ msg }) => msg)

describe('What an earlier process could not store', () => {
  it('is stored by the next one, in batches, and its file is gone', async () => {
    const many = records(1234)
    lab.folder.append(many.map(spilledRow))
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    expect(lab.written()).toEqual(idsOf(many))
    expect(Math.max(...lab.store.batches.map(({ length }) => length))).toBe(100)
    expect([...lab.store.rows.values()]).toEqual(many)
    expect(said()).toEqual(['usage is stored that an earlier process could not store any more'])
  })

  it('is stored once, although the store has some of it, or two processes read it', async () => {
    const many = records(250)
    lab.folder.append(many.map(spilledRow))
    await lab.store.insert(many.slice(0, 30))
    const other = recoveryOf(lab)
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    await other.beforeApplicationShutdown()
    expect(lab.written().sort()).toEqual(idsOf(many).sort())
  })

  it('is stored by whoever comes first where several read many files, and nobody takes that for a fault', async () => {
    const many = records(5)
    const late = many.slice(4).map(spilledRow).join('')
    for (const record of many.slice(0, 4)) new SpillFolder(lab.folder.path).append([spilledRow(record)])
    let goOn = (): void => undefined
    let begin = (): void => undefined
    const isHeld = new Promise<void>((resolve) => (goOn = resolve))
    const mayBegin = new Promise<void>((resolve) => (begin = resolve))
    // The first of two readers stands still in its first file until the other one has stored and removed all of them.
    let batches = 0
    lab.store.before = () => (batches++ === 0 ? isHeld : mayBegin)
    const other = recoveryOf(lab)
    await lab.database.open()
    const taken = await files()
    begin()
    await eventually(async () => (await files()).length === 0)
    expect(taken).toHaveLength(4)
    // The last one is there for the first reader alone: it goes on to it past those that are gone.
    await writeFile(join(lab.folder.path, taken.sort().at(-1) ?? ''), late)
    goOn()
    await Promise.all([recovery.beforeApplicationShutdown(), other.beforeApplicationShutdown()])
    expect([lab.written().sort(), await files()]).toEqual([idsOf(many).sort(), []])
    expect(new Set(said())).toEqual(new Set(['usage is stored that an earlier process could not store any more']))
  })

  it('lacks the lines that were damaged, of which one speaks', async () => {
    const many = records(3)
    const [one = '', two = '', three = ''] = many.map(spilledRow)
    lab.folder.append([one])
    await writeFile(join(lab.folder.path, '1-killed.rows'), `${two.slice(0, 40)}\n${three}${two.slice(0, 77)}`)
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    expect(lab.written().sort()).toEqual(idsOf([many[0], many[2]].filter((each) => each !== undefined)))
    expect(lab.lines.find(({ lines }) => lines === 2)?.['msg']).toBe('lines of kept usage cannot be read: left out')
  })

  it('stays in its file until all of it is stored', async () => {
    const many = records(250)
    lab.folder.append(many.map(spilledRow))
    lab.store.before = () => (lab.store.batches.length > 2 ? away() : undefined)
    await lab.database.open()
    await eventually(() => lab.store.batches.length === 3)
    await end()
    expect(await files()).toHaveLength(1)
    // The next start.
    lab.store.before = () => undefined
    const second = recoveryOf(lab)
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    await second.beforeApplicationShutdown()
    expect(lab.written()).toEqual(idsOf(many))
  })

  it('waits in its file while the store is away', async () => {
    const many = records(3)
    lab.folder.append(many.map(spilledRow))
    lab.store.before = () => (lab.store.batches.length < 2 ? away() : undefined)
    await lab.database.open()
    await eventually(() => lab.store.batches.length === 1)
    expect(await files()).toHaveLength(1)
    await eventually(async () => (await files()).length === 0)
    expect(lab.written()).toEqual(idsOf(many))
  })

  it('keeps its file while another process is still writing into it', async () => {
    const [first, second] = records(2)
    lab.folder.append([first].filter((each) => each !== undefined).map(spilledRow))
    lab.store.before = async () => {
      if (lab.store.batches.length > 1) return
      // The name it had is free by now: the writer begins another file.
      lab.folder.append([second].filter((each) => each !== undefined).map(spilledRow))
      await Promise.resolve()
    }
    await lab.database.open()
    await eventually(() => lab.store.rows.size === 1)
    await eventually(async () => (await spillFiles(lab.folder.path)).length === 1)
    const next = recoveryOf(lab)
    await lab.database.open()
    await eventually(() => lab.store.rows.size === 2)
    await next.beforeApplicationShutdown()
  })

  it('loses a row that no store takes to the log, and no other', async () => {
    const many = records(10)
    lab.folder.append(many.map(spilledRow))
    const bad = many[4]?.id ?? ''
    lab.store.before = (batch) =>
      idsOf(batch).includes(bad) ? Object.assign(new Error('said the server'), { code: '22003' }) : undefined
    await lab.database.open()
    await eventually(async () => (await files()).length === 0)
    expect([lab.written().length, lab.logged()]).toEqual([9, [bad]])
    expect(await lab.metric('gateway_usage_dropped_total')).toBe(1)
  })

  it('stays where it is where usage is not to be stored', async () => {
    await begin({ store: false })
    lab.folder.append(records(2).map(spilledRow))
    await lab.database.open()
    await end()
    expect([await files(), lab.store.batches]).toEqual([[expect.stringMatching(/\.rows$/)], []])
  })

  it('stays where it is when it cannot be read, which is said, and keeps nobody from starting', async () => {
    await rm(lab.folder.path, { recursive: true, force: true })
    await appendFile(lab.folder.path, 'no folder')
    await lab.database.open()
    await eventually(() => said().includes('usage that waits in files cannot be read'))
  })
})
