import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../config/load-config.js'
import { assertAlone, withWorkers, workersNote, workersOf } from './cluster-messages.js'

const config = (workers: string, database = '') =>
  parseConfig(`{server: {workers: ${workers}}, database: {${database}}}`, {})
const POSTGRES = 'url: "postgres://db/gateway"'

describe('the number of workers', () => {
  it('is what the configuration says, auto being the number of processors, where the store is PostgreSQL', () => {
    expect(['1', '3', 'auto'].map((workers) => workersOf(config(workers, POSTGRES), 6))).toEqual([1, 3, 6])
  })

  it('is one on the embedded store, and the log says why auto is', () => {
    expect(['1', 'auto'].map((workers) => workersOf(config(workers), 6))).toEqual([1, 1])
    expect(workersNote(config('auto'))).toMatch(/^one worker, as the embedded store belongs to one process/)
    expect([workersNote(config('1')), workersNote(config('auto', POSTGRES))]).toEqual([undefined, undefined])
  })

  it('above one is refused on the embedded store, with the reason and a way out', () => {
    expect(() => workersOf(config('2'), 6)).toThrow(/WORKERS\) is 2, but the embedded store.*DATABASE_URL/)
  })

  it('that auto comes to is one where limits are counted without Redis, and the log says why', () => {
    const limited = (more: string) =>
      parseConfig(
        `{server: {workers: auto}, database: {${POSTGRES}}, auth: {defaultLimits: {concurrency: 4}}${more}}`,
        {},
      )
    expect(workersOf(limited(''), 6)).toBe(1)
    expect(workersNote(limited(''))).toMatch(
      /^one worker, as several would each count limits by themselves; with REDIS/,
    )
    const shared = limited(', redis: {url: "redis://h"}')
    expect([workersOf(shared, 6), workersNote(shared)]).toEqual([6, undefined])
    expect(withWorkers(shared, 6).server.workers).toBe(6)
    expect(withWorkers(limited(''), 1).server.workers).toBe(1)
  })

  it('above one is refused in the sandbox, whatever the store', () => {
    for (const workers of ['1', 'auto'])
      expect(() => {
        assertAlone(config(workers))
      }).not.toThrow()
    expect(() => {
      assertAlone(config('2', POSTGRES))
    }).toThrow(/WORKERS is 2.*sandbox.*gateway\.yaml/)
  })

  it('stands in the configuration that everything else sees', () => {
    expect(withWorkers(config('auto', POSTGRES), 6).server).toMatchObject({ workers: 6, port: 8080 })
  })
})
