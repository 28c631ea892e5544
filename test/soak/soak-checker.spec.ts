import { describe, expect, it } from '@jest/globals'

import { told, toldBefore, delivered, deliveredBefore, audited, run, withDelivery } from './small-run.js'
import { findViolations } from './soak-checker.js'
import type { ReceivedCallback, SoakRecords } from './soak-records.js'

/** Each with what the checker says of it. */
const BROKEN: readonly (readonly [string, Partial<SoakRecords>, string])[] = [
  // Told once each, or visibly given up.
  ['an unsigned event', { callbacks: [toldBefore, { ...told, isSigned: false }] }, 'event msg_2 came unsigned'],
  [
    'an event that is repeated with another body',
    { callbacks: [toldBefore, { ...toldBefore, digest: 'other' }, told] },
    'event msg_1 came with several bodies',
  ],
  [
    'a change that has two ids',
    { callbacks: [toldBefore, told, { ...told, webhookId: 'msg_3' }] },
    'task 831 has 2 events for its end: msg_2, msg_3',
  ],
  [
    'an event that its owner does not see',
    { audited: [{ ...audited, deliveries: [delivered] }] },
    'event msg_1 is not among those of task 831',
  ],
  [
    'an event that is still waiting',
    withDelivery({ isDelivered: false }),
    'event msg_2 is neither delivered nor given up, or both',
  ],
  [
    'an event that is shown as delivered, but was never taken',
    { callbacks: [toldBefore, { ...told, answer: 'failed' }] },
    'event msg_2 is not delivered, but shown so',
  ],
  [
    'an event that was given up too early',
    withDelivery({ isDelivered: false, isExhausted: true, attempts: 3 }),
    'event msg_2 was given up after 3 attempts',
  ],
  [
    'an end that nobody was told of',
    { audited: [{ ...audited, deliveries: [deliveredBefore] }], callbacks: [toldBefore] },
    'nobody was told of the end of task 831',
  ],
  // Everything has come to its end.
  [
    'a create that was never cleared up',
    { store: { ...run().store, states: { succeed: 1, creating: 1 } } },
    'the store still has 1 tasks in the state creating',
  ],
  [
    'a lost create that nobody looks for any more',
    { store: { ...run().store, states: { unknown: 2 } } },
    'the store still has 2 tasks in the state unknown',
  ],
  [
    'events that wait in the store',
    { store: { ...run().store, waitingEvents: 1 } },
    'the store still has 1 events to deliver',
  ],
  ['a fault of a process', { processFaults: ['a log holds a secret'] }, 'a log holds a secret'],
]

describe('the checker of the soak', () => {
  it('finds nothing in a run that kept every promise', () => {
    expect(findViolations(run())).toEqual([])
  })

  it('takes an event that was given up for settled, when all attempts were made or its receiver is gone', () => {
    const givenUp = { isDelivered: false, isExhausted: true }
    const callbacks: ReceivedCallback[] = [toldBefore, { ...told, answer: 'failed' }]
    const gone: ReceivedCallback[] = [toldBefore, { ...told, answer: 'gone' }]
    expect(findViolations(run({ ...withDelivery({ ...givenUp, attempts: 4 }), callbacks }))).toEqual([])
    expect(findViolations(run({ ...withDelivery({ ...givenUp, attempts: 1 }), callbacks: gone }))).toEqual([])
  })

  it.each(BROKEN)('finds %s', (_, changes, violation) => {
    expect(findViolations(run(changes))).toContain(violation)
  })
})
