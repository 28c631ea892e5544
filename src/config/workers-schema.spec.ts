import { describe, expect, it } from '@jest/globals'
import { FAULTED, FaultList } from './config-fault.js'
import { Cursor } from './schema-schema.js'
import { workers } from './workers-schema.js'

const read = (value: unknown): unknown =>
  workers.read(value, new Cursor('server.workers', { faults: new FaultList(), production: false }))

describe('the number of workers', () => {
  it.each([
    [1, 1],
    [128, 128],
    ['4', 4],
    ['auto', 'auto'],
  ])('may be %j', (value, expected) => {
    expect(read(value)).toBe(expected)
  })

  it.each([0, 129, 1.5, -1, 'all', 'AUTO', '', true, [], 'auto '])('is not %j', (value) => {
    expect(read(value)).toBe(FAULTED)
  })
})
