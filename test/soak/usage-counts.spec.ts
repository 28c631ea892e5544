import { describe, expect, it } from '@jest/globals'
import { comparedCounts } from './mixed/usage-counts.js'

/** A scrape with so many records, the ends of tasks included. */
const scraped = (records: number, tasks: number) => ({
  sumOf: (name: string): number =>
    new Map([
      ['gateway_usage_records_total', records],
      ['gateway_tasks_ended_total', tasks],
    ]).get(name) ?? NaN,
})

describe('Records of use', () => {
  it('are whole where the store holds each that was counted, and one of each task that has ended', () => {
    const held = { stored: 90, endedTasks: 10, storedTasks: 10 }
    expect(comparedCounts(scraped(100, 10), held)).toEqual({ ...held, counted: 90, faults: [] })
  })

  it('are whole where tasks have ended after the last scrape', () => {
    const held = { stored: 90, endedTasks: 15, storedTasks: 15 }
    expect(comparedCounts(scraped(100, 10), held).faults).toEqual([])
  })

  it.each([89, 91])(
    'are not where 90 were counted and %d are stored, however many tasks have ended since',
    (stored) => {
      for (const ended of [10, 15]) {
        const held = { stored, endedTasks: ended, storedTasks: ended }
        expect(comparedCounts(scraped(100, 10), held).faults).toEqual([
          `90 records of calls and answers were counted, and ${stored} are stored`,
        ])
      }
    },
  )

  it.each([14, 16])('are not where 15 tasks have ended and there are %d records of them', (storedTasks) => {
    expect(comparedCounts(scraped(100, 10), { stored: 90, endedTasks: 15, storedTasks }).faults).toEqual([
      `15 tasks have ended, and ${storedTasks} records of them are stored`,
    ])
  })
})
