import { describe, expect, it } from '@jest/globals'
import { newCall } from '../../test/support/raw-upstream.js'
import type { CallLog, Usage, UsageMeter } from './request-context.js'
import { forgetUsage, settleUsage } from './usage-meter.js'

const REPORTED: Usage = { units: { completion_tokens: 30 }, estimated: false }
const SO_FAR: Usage = { units: { prompt_tokens: 9, completion_tokens: 3 }, estimated: true }
const COUNTED = { completion_tokens: 3 }

/** Says how often each of its figures was asked for. */
class Meter implements UsageMeter {
  readonly asked: string[] = []

  usageSoFar(): Usage {
    this.asked.push('so far')
    return SO_FAR
  }

  counted(): Usage['units'] {
    this.asked.push('counted')
    return COUNTED
  }
}

function settled(known: Partial<CallLog>): CallLog {
  const { log } = newCall()
  Object.assign(log, known)
  settleUsage(log)
  return log
}

describe('When a call is over', () => {
  it('what was counted stands beside what its upstream has said, and the request is not looked at', () => {
    const meter = new Meter()
    expect(settled({ usage: REPORTED, meter })).toMatchObject({ usage: REPORTED, estimate: COUNTED })
    expect(meter.asked).toEqual(['counted'])
  })

  it('everything that can be known stands in for what was not said, and nothing beside it', () => {
    const meter = new Meter()
    const log = settled({ meter })
    expect([log.usage, log.estimate, meter.asked]).toEqual([SO_FAR, undefined, ['so far']])
  })

  it('what a provider has counted by itself stays, and nobody who counts nothing is asked', () => {
    const own = { input_characters: 5 }
    expect(settled({ usage: REPORTED, meter: new Meter(), estimate: own }).estimate).toBe(own)
    expect(settled({ usage: REPORTED, meter: { usageSoFar: () => SO_FAR } }).estimate).toBeUndefined()
    expect(settled({ usage: REPORTED }).estimate).toBeUndefined()
  })

  it('nothing is left of an attempt that gave nothing', () => {
    const log = settled({ usage: REPORTED, meter: new Meter() })
    forgetUsage(log, new Error('no byte came'))
    expect([log.usage, log.meter, log.estimate]).toEqual([undefined, undefined, undefined])
  })
})
