import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { AdmissionSection } from '../config/settings.js'
import { Admission } from './admission.js'

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
    return this.admission.judge(this.nowMs)
  }

  begin(times: number): void {
    for (let begun = 0; begun < times; begun++) this.admission.begin()
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

describe('A new request', () => {
  it('is let in until as many are under way as may be, and again when one has ended', () => {
    const machine = new Machine({ concurrentRequests: 2 })
    machine.begin(1)
    expect(machine.judge()).toBeUndefined()
    machine.begin(1)
    expect([machine.judge(), machine.admission.underWay]).toEqual(['concurrency', 2])
    machine.admission.end()
    expect(machine.judge()).toBeUndefined()
  })

  it('is one of sixteen at once while memory is short, and of all when it is not any more', () => {
    const machine = new Machine()
    machine.begin(15)
    machine.memoryShare = 0.95
    machine.rest(1_000)
    expect(machine.judge()).toBeUndefined()
    machine.begin(1)
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
    admission.noteRefusal('memory')
    admission.noteRefusal('loop_delay')
    admission.noteRefusal('memory')
    expect(admission.refused).toEqual({ concurrency: 0, loop_delay: 1, memory: 2 })
  })
})
