import { beforeEach, describe, expect, it } from '@jest/globals'
import { MemoryLoad, type MemoryReading, memoryBesideDocuments } from './memory-load.js'
import { collectGarbage, readProcessMemory } from './process-memory.js'

let reading: { -readonly [name in keyof MemoryReading]: MemoryReading[name] }
let collections: number
let afterCollection: () => void
let load: MemoryLoad
beforeEach(() => {
  reading = { residentBytes: 0, availableBytes: 1_000, heapBytes: 0, heapLimitBytes: 1_000 }
  collections = 0
  afterCollection = () => undefined
  load = new MemoryLoad(
    () => ({ memoryHighShare: 0.9, memoryLowShare: 0.8 }),
    () => ({ ...reading }),
    () => {
      collections++
      afterCollection()
    },
  )
})

describe('Memory', () => {
  it.each(['residentBytes', 'heapBytes'] as const)(
    'is short from the high watermark of %s on, until the low one is reached again',
    (which) => {
      const seen = [900, 901, 850, 801, 800, 899].map((bytes, index) => {
        reading[which] = bytes
        load.look(index * 500)
        return load.isHigh
      })
      expect(seen).toEqual([false, true, true, true, false, false])
    },
  )

  it('is not short when what it was full of is garbage', () => {
    reading.residentBytes = 950
    afterCollection = () => {
      reading.residentBytes = 300
    }
    load.look(0)
    expect([load.isHigh, load.share, collections]).toEqual([false, 0.3, 1])
  })

  it('is not searched for garbage more often than every ten seconds', () => {
    reading.heapBytes = 950
    for (let nowMs = 0; nowMs <= 20_000; nowMs += 500) load.look(nowMs)
    expect([load.isHigh, collections]).toEqual([true, 3])
  })

  it('may be less than the machine has', () => {
    const small = new MemoryLoad(
      () => ({ memoryBytes: 100, memoryHighShare: 0.9, memoryLowShare: 0.8 }),
      () => ({ ...reading }),
      () => undefined,
    )
    reading.residentBytes = 95
    small.look(0)
    load.look(0)
    expect([small.isHigh, load.isHigh]).toEqual([true, false])
  })
})

const GIB = 2 ** 30

describe('The memory that documents leave', () => {
  it.each([
    [3 * GIB, 1.5 * GIB, 1.5 * GIB],
    [24 * GIB, 1.5 * GIB, 22.5 * GIB],
    [2.5 * GIB, 1.5 * GIB, GIB],
    [2 * GIB, 1.5 * GIB, GIB],
    [2 * GIB, 100 * GIB, GIB],
    [GIB, 1.5 * GIB, GIB],
    [GIB / 2, 1.5 * GIB, GIB / 2],
    [3 * GIB, 0, 3 * GIB],
  ])('of %d bytes, with %d for their processes, are %d', (availableBytes, documentsBytes, leftBytes) => {
    expect(memoryBesideDocuments(availableBytes, documentsBytes)).toBe(leftBytes)
  })

  it('is what a process is measured by, unless it is told what it may use', () => {
    const sharesWith = (memoryBytes: { memoryBytes?: number }): number => {
      const watermarks = { memoryHighShare: 0.9, memoryLowShare: 0.8, documentsBytes: 1.5 * GIB, ...memoryBytes }
      const beside = new MemoryLoad(
        () => watermarks,
        () => ({ ...reading, residentBytes: GIB, availableBytes: 3.5 * GIB }),
        () => undefined,
      )
      beside.look(0)
      return beside.share
    }
    expect([sharesWith({}), sharesWith({ memoryBytes: 4 * GIB })]).toEqual([0.5, 0.25])
  })
})

describe('The memory of this process', () => {
  it('is within its limits', () => {
    const { residentBytes, availableBytes, heapBytes, heapLimitBytes } = readProcessMemory(1)
    expect(residentBytes).toBeGreaterThan(heapBytes)
    expect(availableBytes).toBeGreaterThan(residentBytes)
    expect(heapLimitBytes).toBeGreaterThan(heapBytes)
  })

  it('is free of garbage after a collection', () => {
    let garbage: unknown[] = []
    for (let index = 0; index < 300_000; index++) garbage.push({ index })
    const fullBytes = readProcessMemory(1).heapBytes
    garbage = []
    collectGarbage()
    expect(readProcessMemory(1).heapBytes).toBeLessThan(fullBytes - 5_000_000)
    expect(garbage).toEqual([])
  })
})
