import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import type { AdmissionSection } from '../config/settings.js'
import { Admission, shareOfAdmission } from './admission.js'
import { readProcessMemory } from './load-monitor.js'

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
