import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { parseConfig } from '../../test/support/config.js'
import { dialectOf } from '../../test/support/endpoints.js'
import type { AdmissionSection } from '../config/settings.js'
import { FairShare, type Sharer } from '../core/fair-share.js'
import { renderError } from '../dialects/error-format.js'
import { Admission, REFUSAL_REASONS, shareOfAdmission } from './admission.js'
import {
  collectGarbage,
  EventLoopLoad,
  memoryBesideDocuments,
  MemoryLoad,
  type MemoryReading,
  readProcessMemory,
} from './load-monitor.js'
import { fairPart, FairTurns } from './fair-turns.js'
import { KnownRefusals } from './known-refusals.js'
import { refusalError, RefusalTemplates, RequestGate } from './request-gate.js'

const ANYONE = { keyId: 'anyone' }

describe('A new request', () => {
  const SETTINGS: AdmissionSection = {
    concurrentRequests: 100,
    bytesInFlight: 1_000_000,
    callerShare: 0.5,
    loopDelayHighMs: 100,
    loopDelayLowMs: 5,
    memoryHighShare: 0.9,
    memoryLowShare: 0.8,
  }

  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  /** A process whose memory, work and clock are what the test says. */
  class Machine {
    memoryShare = 0.1
    readonly admission: Admission
    private nowMs = 1_000
    private workedMs = 0

    constructor(settings: Partial<AdmissionSection> = {}) {
      this.admission = new Admission(() => ({ ...SETTINGS, ...settings }), {
        readMemory: () => ({
          residentBytes: this.memoryShare * 1_000,
          availableBytes: 1_000,
          heapBytes: 1,
          heapLimitBytes: 1_000,
        }),
        collectGarbage: () => undefined,
        nowMs: () => this.nowMs,
        workedMs: () => this.workedMs,
      })
      this.admission.start()
    }

    judge(): string | undefined {
      return this.admission.check(this.nowMs, ANYONE)
    }

    begin(times: number): void {
      for (let begun = 0; begun < times; begun++) this.admission.begin(ANYONE)
    }

    /** Time in which nothing is done. */
    rest(durationMs: number): void {
      this.workedMs = 0
      for (const endMs = this.nowMs + durationMs; this.nowMs < endMs; this.nowMs += 1) jest.advanceTimersByTime(1)
    }

    /** A turn of the event loop goes on for so long: no timer runs. */
    work(turnMs: number): void {
      this.workedMs = turnMs
      this.nowMs += turnMs
    }

    /** So many turns of such a length. */
    turns(count: number, turnMs: number): void {
      for (let turn = 0; turn < count; turn++) {
        this.work(turnMs)
        this.nowMs += this.admission.loop.intervalMs
        jest.advanceTimersByTime(this.admission.loop.intervalMs)
      }
    }
  }

  it('is let in until as many are under way as may be, and again when one has ended', () => {
    const machine = new Machine({ concurrentRequests: 2 })
    machine.begin(1)
    expect(machine.judge()).toBeUndefined()
    machine.begin(1)
    expect([machine.judge(), machine.admission.underWay]).toEqual(['concurrency', 2])
    machine.admission.end(ANYONE, 0)
    expect(machine.judge()).toBeUndefined()
  })

  it('is one of sixteen at once while memory is short, and of all when it is not any more', () => {
    const machine = new Machine()
    machine.begin(13)
    machine.memoryShare = 0.95
    machine.rest(1_000)
    expect(machine.judge()).toBeUndefined()
    machine.begin(1)
    // The last two are for those that hold few.
    expect(machine.judge()).toBe('memory')
    for (const keyId of ['a', 'b']) machine.admission.begin({ keyId })
    expect(machine.judge()).toBe('memory')
    machine.memoryShare = 0.85
    machine.rest(1_000)
    expect(machine.judge()).toBe('memory')
    machine.memoryShare = 0.75
    machine.rest(1_000)
    expect(machine.judge()).toBeUndefined()
  })

  it('is never one of more than may be at once, however short memory is', () => {
    const machine = new Machine({ concurrentRequests: 1 })
    machine.memoryShare = 0.95
    machine.rest(1_000)
    machine.begin(1)
    expect(machine.judge()).toBe('memory')
  })

  it('has a part of each turn of the event loop while these are too long, and all of them when they are not', () => {
    const machine = new Machine()
    machine.turns(6, 200)
    expect([machine.judge(), machine.judge()]).toEqual([undefined, undefined])
    machine.work(200)
    expect(machine.judge()).toBe('loop_delay')
    machine.rest(3_000)
    machine.work(200)
    expect([machine.judge(), machine.judge()]).toEqual([undefined, undefined])
  })

  it('is counted under its reason when it is refused', () => {
    const { admission } = new Machine()
    admission.countRefusal('memory')
    admission.countRefusal('loop_delay')
    admission.countRefusal('memory')
    expect(admission.refused).toEqual({ concurrency: 0, loop_delay: 1, memory: 2 })
  })
})

const config = (server: string, admission = '') => parseConfig(`{server: {${server}}, admission: {${admission}}}`, {})

describe('the share of one worker', () => {
  it('is all of it where there is one', () => {
    const whole = config('workers: 1', 'bytesInFlight: 100000000, memoryBytes: 1000000000')
    expect(shareOfAdmission(whole)).toEqual({ ...whole.admission, documentsBytes: 2 * 805_306_368 })
  })

  it('is its part of the memory, and of nothing else', () => {
    const whole = config('workers: 4', 'bytesInFlight: 100000001, memoryBytes: 1000000000')
    expect(shareOfAdmission(whole)).toEqual({
      ...whole.admission,
      bytesInFlight: 25000000,
      memoryBytes: 250000000,
      documentsBytes: 2 * 805_306_368,
    })
  })

  it('leaves to the processes that read documents what they may have: each worker has its own', () => {
    const documents = (workers: number): number =>
      shareOfAdmission(
        parseConfig(`{server: {workers: ${workers}}, documents: {processes: 3, memoryBytes: 200000000}}`, {}),
      ).documentsBytes
    expect([1, 4].map(documents)).toEqual([600000000, 600000000])
  })

  it('is its part of what the machine or its container has', () => {
    expect(shareOfAdmission(config('workers: 4'))).not.toHaveProperty('memoryBytes')
    const { availableBytes } = readProcessMemory(1)
    expect(readProcessMemory(4).availableBytes).toBe(availableBytes / 4)
  })
})

describe('Callers that share', () => {
  const FLOOD = { keyId: 'flood' }
  const address = (host: string): Sharer => ({ keyId: 'caller', member: host })

  /**
   * Seconds of overload: turns of twenty milliseconds, in which each of the callers sends so many requests and each admitted one
   * takes half a millisecond, and the same for each 32 KiB. Returns how many of all requests of each were served, in the second
   * half of the time.
   */
  function served(
    callers: readonly (readonly [Sharer, perTurn: (turn: number) => number, bytes?: number])[],
    seconds = 10,
  ): number[] {
    let nowMs = 1_000
    const load = new EventLoopLoad(() => ({ loopDelayHighMs: 100, loopDelayLowMs: 10 }), nowMs)
    const counts = callers.map(() => ({ asked: 0, served: 0 }))
    const beginMs = nowMs
    for (let turn = 0; nowMs < beginMs + seconds * 1_000; turn++) {
      const startedAtMs = nowMs
      for (const [index, [sharer, perTurn, bytes = 0]] of callers.entries()) {
        for (let sent = 0; sent < perTurn(turn); sent++) {
          const isIn = load.admits(nowMs, sharer)
          nowMs += isIn ? 0.5 * (1 + bytes / 32_768) : 0.01
          if (isIn) load.countBytes(sharer, bytes)
          const count = counts[index]
          if (count === undefined || nowMs < beginMs + seconds * 500) continue
          count.asked++
          if (isIn) count.served++
        }
      }
      const workedMs = nowMs - startedAtMs
      nowMs = Math.max(nowMs, startedAtMs + 20) + load.intervalMs
      load.turned(nowMs, nowMs - startedAtMs - workedMs, workedMs)
    }
    return counts.map((count) => count.served / count.asked)
  }

  it('are all served that ask for a tenth of their part, whatever one with a key sends', () => {
    const rare = (turn: number): number => Number(turn % 10 === 0)
    const [flood = 1, ...others] = served([
      [FLOOD, () => 1_000],
      [{ keyId: 'a' }, rare],
      [{ keyId: 'b' }, rare],
    ])
    expect(others).toEqual([1, 1])
    expect(flood).toBeLessThan(0.2)
  })

  it('are served by their keys whatever a flood of addresses sends, and by their address beside one of them', () => {
    const rare = (turn: number): number => Number(turn % 10 === 0)
    expect(
      served([
        [address('6.6.6.6'), () => 1_000],
        [{ keyId: 'a' }, rare],
        [address('10.0.0.1'), rare],
      ]).slice(1),
    ).toEqual([1, 1])
    const invented = Array.from({ length: 500 }, (_, index) => [address(`6.6.${index}.1`), () => 2] as const)
    const [key = 0] = served([[{ keyId: 'a' }, rare], ...invented], 4)
    expect(key).toBe(1)
  })

  it('have the same where they ask for the same, and leave what they do not ask for to others', () => {
    const [one = 0, other = 0, modest = 0] = served([
      [FLOOD, () => 60],
      [{ keyId: 'a' }, () => 60],
      [{ keyId: 'b' }, () => 4],
    ])
    expect(modest).toBeGreaterThan(0.95)
    expect(one / other).toBeGreaterThan(0.7)
    expect(one / other).toBeLessThan(1.4)
  })

  it('of large bodies or answers count for the work they are, not for one request', () => {
    const [flood = 1, small = 0] = served([
      [FLOOD, () => 4, 1_000_000],
      [{ keyId: 'a' }, () => 10],
    ])
    expect(small).toBeGreaterThan(0.9)
    expect(flood).toBeLessThan(0.4)
  })

  it('go first for all that is admitted with keys, and without them for half of it', () => {
    const turns = new FairTurns()
    // Of one caller, so that nine in ten of all others are below their part.
    for (let count = 0; count < 1_000; count++) turns.count(FLOOD)
    turns.tick(100)
    const first = (sharer: (index: number) => Sharer): number =>
      Array.from({ length: 1_000 }, (_, index) => turns.takesTurn(sharer(index))).filter(Boolean).length
    const byKey = first((index) => ({ keyId: `key-${index}` }))
    const byAddress = first((index) => address(`10.0.${index >> 8}.${index & 255}`))
    // A hundred milliseconds of a sum of which half is forgotten in a second.
    expect(byKey).toBe(Math.floor(1_000 * 0.5 ** 0.1 * Math.LN2 * 0.1))
    expect(byAddress).toBe(Math.floor((1_000 * 0.5 ** 0.1 * Math.LN2 * 0.1) / 2))
  })

  it('without keys divide the part of a key between them, also one that is alone', () => {
    const turns = new FairTurns()
    for (let count = 0; count < 400; count++) turns.count(FLOOD)
    for (let count = 0; count < 100; count++) turns.count(address('10.0.0.1'))
    turns.tick(100)
    expect(turns.takesTurn(address('10.0.0.1'))).toBe(true)
  })

  it('count together once there are too many names, and then get no turn that one of them would not', () => {
    const turns = new FairTurns()
    for (let index = 0; index < 4_096; index++) turns.count({ keyId: `key-${index}` })
    for (let count = 0; count < 100; count++) turns.count({ keyId: 'one more' })
    turns.tick(100)
    expect(turns.takesTurn({ keyId: 'another one' })).toBe(false)
  })

  it('get no more than they ask for, and share the rest equally', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 20 }), fc.nat(5_000), (wanted, total) => {
        const part = fairPart(wanted, total)
        const given = wanted.reduce((sum, amount) => sum + Math.min(amount, part), 0)
        const all = wanted.reduce((sum, amount) => sum + amount, 0)
        expect(given).toBeCloseTo(Math.min(total, all), 6)
      }),
    )
  })

  it('leave places free for those that hold few', () => {
    const places = new FairShare(() => ({ total: 80, callerShare: 0.5, mayExceedShare: true }))
    const taken = (sharer: Sharer): number => {
      let count = 0
      while (places.take(sharer)) count++
      return count
    }
    expect(taken(FLOOD)).toBe(70)
    // Of the last ten, one caller has as many as are next to nothing.
    expect([taken({ keyId: 'a' }), taken({ keyId: 'b' })]).toEqual([5, 5])
    for (let ended = 0; ended < 35; ended++) places.count(FLOOD, -1)
    expect(places.take(FLOOD)).toBe(true)
    for (let ended = 0; ended < 10; ended++) places.count(FLOOD, -1)
    expect([taken({ keyId: 'a' }), places.held]).toEqual([34, 70])
  })
})

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
   * refused one a hundredth of that; `otherMs` is what is done beside them, and for `stolenMs` another process had the processor.
   * Returns how many were admitted.
   */
  function turn(requests: number, costMs = 0, otherMs = 0, stolenMs = 0): number {
    const startedAtMs = nowMs
    let admitted = 0
    for (let index = 0; index < requests; index++) {
      const isIn = load.admits(nowMs, ANYONE)
      if (isIn) admitted++
      nowMs += isIn ? costMs : costMs / 100
    }
    const workedMs = nowMs - startedAtMs + otherMs
    nowMs += otherMs + stolenMs + load.intervalMs
    load.turned(nowMs, load.intervalMs, workedMs)
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

const PATHS = [
  '/v1/chat/completions',
  '/v1/audio/speech',
  '/v1/messages',
  '/vidgen/v1/videos/text2video',
  '/imggen/task/1/fetch',
  '/v1/document/parse',
  '/nowhere',
]

describe.each(PATHS)('A refusal on %s', (path) => {
  it.each(REFUSAL_REASONS)('for %s is over the wire what it is everywhere else', (reason) => {
    const refusals = new RefusalTemplates()
    for (const requestId of ['req_1', 'a'.repeat(128), 'x.Y:z-_0']) {
      const text = refusals.wireText(dialectOf(path), refusalError(reason), requestId, {
        nowMs: Date.UTC(2026, 0, 2, 3, 4, 5),
      })
      const [head = '', body = ''] = text.split('\r\n\r\n')
      const [statusLine = '', ...lines] = head.split('\r\n')
      const expected = renderError(refusalError(reason), dialectOf(path), requestId)
      expect(statusLine.split(' ').slice(0, 2)).toEqual(['HTTP/1.1', String(expected.status)])
      expect(Object.fromEntries(lines.map((line) => line.split(': ')))).toEqual({
        ...expected.headers,
        'content-length': String(Buffer.byteLength(expected.body)),
        date: 'Fri, 02 Jan 2026 03:04:05 GMT',
      })
      expect(body).toBe(expected.body)
    }
  })
})

describe('RefusalTemplates', () => {
  it('say 503, on messages 529, and when to come back', () => {
    const refusals = new RefusalTemplates()
    expect(refusals.wireText(dialectOf('/v1/chat/completions'), refusalError('loop_delay'), 'r')).toMatch(
      /^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n/,
    )
    expect(refusals.wireText(dialectOf('/v1/messages'), refusalError('memory'), 'r')).toMatch(
      /^HTTP\/1\.1 529 [^]*\r\nretry-after: 5\r\n/,
    )
  })

  it('carry the date of their second, also when the clock is set back', () => {
    const refusals = new RefusalTemplates()
    const dateAt = (nowMs: number): string | undefined =>
      /\r\ndate: (.*)\r\n/.exec(refusals.wireText(dialectOf('/'), refusalError('memory'), 'r', { nowMs }))?.[1]
    for (const nowMs of [5_000, 5_999, 6_000, 5_500, 0]) expect(dateAt(nowMs)).toBe(new Date(nowMs).toUTCString())
  })
})

describe('request door', () => {
  const { admission: SETTINGS } = parseConfig('{}', {})

  const CHAT = '/v1/chat/completions'

  /** The door of a process that refuses requests, in a turn of its event loop that has lasted too long already. */
  function busyDoor(): RequestGate {
    let nowMs = 1_000
    const admission = new Admission(() => SETTINGS, { nowMs: () => nowMs })
    for (let turn = 0; turn < 10; turn++) {
      nowMs += 250
      admission.loop.turned(nowMs, 0, 250)
    }
    nowMs += 50
    return new RequestGate({
      ...{ admission, dialectOf },
      known: new KnownRefusals({ keyFault: () => undefined, onRepeated: () => undefined, nowMs: () => nowMs }),
      mayBeBare: () => true,
      lastResponse: () => undefined,
      endpointOf: () => undefined,
      sharerOf: () => ANYONE,
      nowMs: () => nowMs,
    })
  }

  describe('A turn that has room for one more request', () => {
    it('gives it to the first that comes', () => {
      const door = busyDoor()
      expect([door.check(CHAT, ANYONE), door.check(CHAT, ANYONE)]).toEqual(['let_in', 'loop_delay'])
    })

    it.each(['/health/live', '/health/ready', '/admin/v1/keys'])(
      'does not give it to %s, which is let in anyway',
      (path) => {
        const door = busyDoor()
        expect([door.check(path, ANYONE), door.check(CHAT, ANYONE), door.check(CHAT, ANYONE)]).toEqual([
          'let_in',
          'let_in',
          'loop_delay',
        ])
      },
    )

    it('gives it to no caller in place of operators beyond those that are let in at once', () => {
      const door = busyDoor()
      const operators = Array.from({ length: 6 }, () => door.check('/admin/v1/keys', ANYONE))
      expect(operators).toEqual(['let_in', 'let_in', 'let_in', 'let_in', 'let_in', 'loop_delay'])
    })
  })

  describe('A probe', () => {
    it('is let in however many there are, and none is counted as refused', () => {
      const door = busyDoor()
      const verdicts = Array.from({ length: 50 }, () => door.check('/health/live', ANYONE))
      expect(new Set(verdicts)).toEqual(new Set(['let_in']))
      expect(door.isRefusing).toBe(false)
    })
  })
})
