import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { usageRecord } from '../../test/support/usage-records.js'
import { spillPlace } from '../../test/support/usage-writer-lab.js'
import { linesOf, recordOfRow, spilledRow } from './spilled-row.js'

describe('A row of a spill file', () => {
  it.each([
    usageRecord(),
    usageRecord({
      requestId: null,
      model: 'a "model"\n with é 😀',
      channelId: null,
      durationMs: null,
      units: { audioSeconds: 1.7000000476837158 },
      reported: null,
      estimated: '{"a":1.0}',
      pricing: 'unpriced',
      cost: null,
    }),
  ])('holds all of a record, in one line', (record) => {
    const row = spilledRow(record)
    expect(row.split('\n')).toHaveLength(2)
    expect(recordOfRow(row.trim())).toEqual(record)
  })

  it('is worth nothing when any part of it is missing', () => {
    const row = spilledRow(usageRecord()).trim()
    for (let length = 0; length < row.length; length++) expect(recordOfRow(row.slice(0, length))).toBeUndefined()
  })

  it.each([
    ['null'],
    ['[]'],
    ['7'],
    ['{}'],
    [JSON.stringify({ ...usageRecord(), kind: 'other' })],
    [JSON.stringify({ ...usageRecord(), units: { stars: 3 } })],
    [JSON.stringify({ ...usageRecord(), units: null })],
    [JSON.stringify({ ...usageRecord(), atMs: '1' })],
    ['\0\0\0\0'],
  ])('that is none is told apart: %s', (line) => {
    expect(recordOfRow(line)).toBeUndefined()
  })
})

describe('The lines of a file', () => {
  const linesIn = async (bytes: string): Promise<string[]> => {
    const place = await spillPlace()
    try {
      const file = join(place, 'lines')
      await writeFile(file, bytes)
      const lines: string[] = []
      for await (const line of linesOf(file)) lines.push(line)
      return lines
    } finally {
      await rm(place, { recursive: true })
    }
  }

  it('come one by one, the last one also without its end', async () => {
    expect(await linesIn('one\n\ntwo\nth')).toEqual(['one', '', 'two', 'th'])
    const long = 'é'.repeat(100_000)
    expect(await linesIn(`${long}\n${long}`)).toEqual([long, long])
  })

  it('are never as long as a damaged file', async () => {
    const lines = await linesIn(`${'x'.repeat(5_000_000)}\nlast\n`)
    expect(lines.at(-2)).toBe('last')
    expect(lines[0]?.length).toBeLessThan(1_200_000)
  })

  it('fail with what the file system says', async () => {
    await expect(linesOf('/no/such/file').next()).rejects.toMatchObject({ code: 'ENOENT' })
  })
})
