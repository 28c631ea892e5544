import { beforeEach, describe, expect, it } from '@jest/globals'
import {
  collectGarbage,
  EventLoopLoad,
  memoryBesideDocuments,
  MemoryLoad,
  type MemoryReading,
  readProcessMemory,
} from './load-monitor.js'

const ANYONE = { keyId: 'anyone' }

describe('loop load', () => {
  const WATERMARKS = { loopDelayHighMs: 100, loopDelayLowMs: 10 }
  const TURNS_TO_RECOVER = 60

  let nowMs: number
  let load: EventLoopLoad
  beforeEach(() => {
    nowMs = 1_000
    load = new EventLoopLoad(() => WATERMARKS, nowMs)
  })

  /**
   * One turn of an event loop in which `requests` come one after the other and each that is admitted takes `costMs`, each
   * refused one a hundredth of that; `otherMs` is what is done beside them, for `stolenMs` another process had the processor, and
   * connections have waited for `acceptWaitMs`. Returns how many were admitted.
   */
  function turn(requests: number, costMs = 0, otherMs = 0, stolenMs = 0, acceptWaitMs = 0): number {
    const startedAtMs = nowMs
    let admitted = 0
    for (let index = 0; index < requests; index++) {
      const isIn = load.admits(nowMs, ANYONE)
      if (isIn) admitted++
      nowMs += isIn ? costMs : costMs / 100
    }
    const workedMs = nowMs - startedAtMs + otherMs
    nowMs += otherMs + stolenMs + load.intervalMs
    load.turned(nowMs, load.intervalMs, workedMs, acceptWaitMs)
    return admitted
  }

  const turns = (count: number, ...what: Parameters<typeof turn>): number[] =>
    Array.from({ length: count }, () => turn(...what))

  describe('A calm event loop', () => {
    it('admits all of a burst that its turn can take', () => {
      expect(turn(900, 0.1)).toBe(900)
      expect([load.isShedding, load.delayMs]).toEqual([false, expect.closeTo(90, 5)])
    })

    it('admits some hundred requests together however long they take', () => {
      expect(turn(512, 5)).toBe(512)
      expect(load.isShedding).toBe(false)
    })

    it('takes one slow piece of work, or four in a row, for no overload', () => {
      expect(turns(4, 10, 0, 2_000)).toEqual([10, 10, 10, 10])
      expect(turn(10)).toBe(10)
      expect(turns(4, 10, 0, 2_000)).toEqual([10, 10, 10, 10])
      expect(load.isShedding).toBe(false)
    })

    it('is not overloaded by turns that are long because others have the processor', () => {
      turns(50, 10, 0, 5, 400)
      expect([load.isShedding, load.delayMs]).toEqual([false, 405])
    })

    it('of one caller may have long turns, of several callers turns half as long', () => {
      turns(20, 10, 0, 90)
      expect(load.isShedding).toBe(false)
      load.admits(nowMs, { keyId: 'other' })
      turns(20, 10, 0, 40)
      expect(load.isShedding).toBe(false)
      turns(20, 10, 0, 90)
      expect(load.isShedding).toBe(true)
    })

    it('of several callers admits no burst that makes a turn long, of one caller four times as many', () => {
      load.admits(nowMs, { keyId: 'other' })
      turn(1)
      expect(turn(512, 1)).toBe(128)
    })

    it('is looked at fifty times a second, and with a low watermark more often', () => {
      expect(load.intervalMs).toBe(20)
      expect(new EventLoopLoad(() => ({ loopDelayHighMs: 25, loopDelayLowMs: 5 }), 0).intervalMs).toBe(5)
    })
  })

  describe('An event loop under more requests than it can serve', () => {
    it('refuses those that come when a turn has lasted as long as it may, and from then on all that are too many', () => {
      expect(turn(5_000, 0.1)).toBeLessThanOrEqual(1_002)
      expect(load.isShedding).toBe(true)
      const admitted = turns(200, 300, 0.1)
      const delays = turns(50, 300, 0.1).map(() => load.delayMs)
      expect(Math.max(...delays)).toBeLessThan(20)
      expect(Math.min(...admitted)).toBeGreaterThan(10)
    })

    it('sheds as well when new connections of several callers wait, though its turns are short', () => {
      turns(20, 32, 0.3, 0, 0, 5_000)
      expect(load.isShedding).toBe(false)
      load.admits(nowMs, { keyId: 'other' })
      turns(2, 32, 0.3, 0, 0, 99)
      expect(load.isShedding).toBe(false)
      load.admits(nowMs, { keyId: 'other' })
      turns(20, 32, 0.3, 0, 0, 100)
      expect(load.isShedding).toBe(true)
      // In shorter turns more connections are accepted.
      expect(turn(32, 0.3, 0, 0, 100)).toBeLessThan(12)
      expect(load.delayMs).toBeLessThan(4)
    })

    it('sheds as well when its turns are long for another reason and stay so', () => {
      turns(9, 10, 0, 101)
      expect(load.isShedding).toBe(false)
      turns(1, 10, 0, 101)
      expect(load.isShedding).toBe(true)
      // What was admitted before keeps it busy: hardly anything new comes in until that is over.
      turns(20, 50, 0.1, 200)
      expect(turn(50, 0.1, 200)).toBeLessThanOrEqual(21)
    })

    it('admits at least one request in every turn, whatever happens', () => {
      turn(5_000, 1)
      nowMs += 60_000
      expect(turn(5)).toBe(1)
    })

    it('does not count the refusals themselves against those who are admitted', () => {
      turn(5_000, 0.1)
      // Thousands who do not wait before they come again make long turns; the share of the admitted stays.
      const admitted = turns(300, 4_000, 1).slice(200)
      expect(Math.min(...admitted)).toBeGreaterThanOrEqual(5)
    })
  })

  describe('An event loop that was overloaded', () => {
    beforeEach(() => {
      turn(5_000, 0.1)
      turns(100, 300, 0.1)
    })

    it('admits everything again soon after the load has fallen', () => {
      turns(TURNS_TO_RECOVER, 5, 0.1)
      expect(turns(100, 20, 0.1)).toEqual(Array.from({ length: 100 }, () => 20))
    })

    it('is calm again once hardly anything was refused for a second, and not before', () => {
      const calmAtMs = nowMs + 2_000
      while (load.isShedding && nowMs < calmAtMs) turn(5, 0.1)
      expect(load.isShedding).toBe(false)
      expect(turn(900, 0.1)).toBe(900)
    })

    it('is calm again as soon as it leaves a good part of its processor unused, whatever was refused meanwhile', () => {
      const calmAtMs = nowMs + 2_100
      while (load.isShedding && nowMs < calmAtMs) turn(40, 0.1, 0, 30)
      expect(load.isShedding).toBe(false)
    })

    it('is not calm while more than a few of its requests are refused', () => {
      for (const untilMs = nowMs + 5_000; nowMs < untilMs;) turn(150, 0.1)
      expect(load.isShedding).toBe(true)
    })

    it('goes by the watermarks as they are now', () => {
      const changed = { ...WATERMARKS }
      load = new EventLoopLoad(() => changed, nowMs)
      changed.loopDelayHighMs = 1_000
      turn(1)
      expect(turn(5_000, 0.1)).toBe(5_000)
    })
  })
})

describe('memory load', () => {
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
          load.sample(index * 500)
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
      load.sample(0)
      expect([load.isHigh, load.share, collections]).toEqual([false, 0.3, 1])
    })

    it('is not searched for garbage more often than every ten seconds', () => {
      reading.heapBytes = 950
      for (let nowMs = 0; nowMs <= 20_000; nowMs += 500) load.sample(nowMs)
      expect([load.isHigh, collections]).toEqual([true, 3])
    })

    it('may be less than the machine has', () => {
      const small = new MemoryLoad(
        () => ({ memoryBytes: 100, memoryHighShare: 0.9, memoryLowShare: 0.8 }),
        () => ({ ...reading }),
        () => undefined,
      )
      reading.residentBytes = 95
      small.sample(0)
      load.sample(0)
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
        beside.sample(0)
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
})
