import { describe, expect, it } from '@jest/globals'

import { attempt, made, seen, told, toldBefore, audited, run } from './small-run.js'
import { findViolations } from './soak-checker.js'
import type { SoakRecords } from './soak-records.js'

/** Each with what the checker says of it. */
const BROKEN: readonly (readonly [string, Partial<SoakRecords>, string])[] = [
  // Readable exactly once, by its owner only.
  [
    'a task that was acknowledged and is nowhere to be found',
    { audited: [], upstream: [], callbacks: [] },
    'nobody looked for the promised task anna 831',
  ],
  [
    'a task that was paid for and is nowhere to be found',
    { attempts: [{ ...attempt, outcome: 'unclear' }], audited: [], callbacks: [] },
    'nobody looked for the promised task anna 831',
  ],
  ['a task that is not listed', { lists: new Map([['anna', []]]) }, 'task 831 of anna is listed 0 times'],
  ['a task that is listed twice', { lists: new Map([['anna', ['831', '831']]]) }, 'task 831 of anna is listed 2 times'],
  [
    'a task that is listed to somebody else',
    { lists: new Map([...run().lists, ['bert', ['831']]]) },
    'task 831 of anna is listed to bert',
  ],
  [
    'a task that is not found by its id',
    { audited: [{ ...audited, byId: { httpStatus: 404 } }] },
    'task 831 of anna is not found by its id (status 404)',
  ],
  [
    'a task whose id shows another one',
    { audited: [{ ...audited, byId: { httpStatus: 200, taskId: '832' } }] },
    'task 831 of anna is not found by its id (status 200)',
  ],
  [
    'a task that is not found by its external id',
    { audited: [{ ...audited, byExternalId: { httpStatus: 404 } }] },
    'task 831 of anna is not found by its external id order-1 (status 404)',
  ],
  [
    'a task that somebody else can read at the end',
    { audited: [{ ...audited, byOther: { httpStatus: 200, taskId: '831' } }] },
    'task 831 of anna can be asked for by others (status 200)',
  ],
  [
    'a task that somebody else can read by its external id',
    { audited: [{ ...audited, byOthersExternalId: { httpStatus: 200, taskId: '831' } }] },
    'task 831 of anna is shown to others by its external id',
  ],
  ['a task that somebody else could read meanwhile', { trespasses: ['shown to bert'] }, 'shown to bert'],
  // Paid once.
  [
    'a create that reached the upstream twice and was refused there',
    { upstreamDuplicates: ['aaaa.order-1'] },
    'the upstream was asked twice for aaaa.order-1',
  ],
  [
    'an external id that was paid for twice',
    { upstream: [made, { ...made, taskId: '832', marker: 'm-2' }] },
    'the external id aaaa.order-1 has 2 tasks: 831, 832',
  ],
  [
    'a create without an external id that was paid for twice',
    { upstream: [made, { ...made, taskId: '832', upstreamExternalId: 'aaaa.0' }] },
    'the create m-1 has 2 tasks: 831, 832',
  ],
  [
    'a refused create that was paid for all the same',
    {
      attempts: [attempt, { ...attempt, marker: 'm-2', outcome: 'refused' }],
      upstream: [made, { ...made, marker: 'm-2' }],
    },
    'the refused create m-2 was made upstream',
  ],
  [
    'a task that nobody ordered',
    { upstream: [made, { ...made, taskId: '839', owner: 'bert' }] },
    'the upstream made 839 for bert, who did not ask for it',
  ],
  [
    'an external id under which two tasks were acknowledged',
    { attempts: [attempt, { ...attempt, marker: 'm-2', idempotencyKey: 'key-2', taskId: '832' }] },
    "the external id anna's order-1 has 2 tasks: 831, 832",
  ],
  [
    'an idempotency key under which two tasks were acknowledged',
    { attempts: [attempt, { ...attempt, externalId: 'order-2', taskId: '832' }] },
    "the idempotency key anna's key-1 has 2 tasks: 831, 832",
  ],
  // Forward only.
  [
    'a state that goes back',
    { sightings: [seen('processing', 0, 5), seen('submitted', 6, 7)] },
    'task 831 is shown as submitted after processing',
  ],
  [
    'an end that is taken back',
    { sightings: [seen('submitted', 0, 1), seen('succeed', 2, 3), seen('processing', 4, 5)] },
    'task 831 is shown as processing after succeed',
  ],
  [
    'an end that becomes another one',
    { sightings: [seen('failed', 0, 1), seen('succeed', 2, 3)] },
    'task 831 has several ends: failed, succeed',
  ],
  [
    'an end whose object changes afterwards',
    { sightings: [seen('succeed', 0, 1), seen('succeed', 2, 3, 'failed')] },
    'task 831 has several ends: succeed',
  ],
  [
    'a receiver that is told of another end than readers see',
    { callbacks: [toldBefore, { ...told, status: 'failed', digest: 'failed' }] },
    'task 831 has several ends: succeed, failed',
  ],
  [
    'events that go back by their own time',
    { callbacks: [{ ...toldBefore, updatedAt: 30 }, told] },
    'task 831 is told as processing after succeed, by its own time',
  ],
]

describe('the checker of the soak', () => {
  it.each(BROKEN)('finds %s', (_, changes, violation) => {
    expect(findViolations(run(changes))).toContain(violation)
  })
})
