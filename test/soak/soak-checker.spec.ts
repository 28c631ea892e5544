import { describe, expect, it } from '@jest/globals'
import { findViolations } from './soak-checker.js'
import type {
  AuditedTask,
  CreateAttempt,
  ReceivedCallback,
  Sighting,
  SoakRecords,
  UpstreamCreate,
} from './soak-records.js'

const attempt: CreateAttempt = {
  owner: 'anna',
  marker: 'm-1',
  externalId: 'order-1',
  idempotencyKey: 'key-1',
  wantsCallbacks: true,
  outcome: 'acknowledged',
  taskId: '831',
}
const made: UpstreamCreate = {
  taskId: '831',
  owner: 'anna',
  marker: 'm-1',
  upstreamExternalId: 'aaaa.order-1',
  externalId: 'order-1',
}
const seen = (status: Sighting['status'], startedAtMs: number, endedAtMs: number, digest = status): Sighting => ({
  ...{ taskId: '831', status, startedAtMs, endedAtMs, digest },
})
const told: ReceivedCallback = {
  ...{ webhookId: 'msg_2', taskId: '831', status: 'succeed', updatedAt: 20, digest: 'succeed' },
  ...{ isSigned: true, answer: 'taken' },
}
const toldBefore: ReceivedCallback = {
  ...{ ...told, webhookId: 'msg_1', status: 'processing', updatedAt: 10, digest: 'processing' },
}
const delivered = { webhookId: 'msg_2', attempts: 1, isDelivered: true, isExhausted: false }
const deliveredBefore = { ...delivered, webhookId: 'msg_1' }
const audited: AuditedTask = {
  ...{ owner: 'anna', taskId: '831', externalId: 'order-1', status: 'succeed' },
  byId: { httpStatus: 200, taskId: '831' },
  byExternalId: { httpStatus: 200, taskId: '831' },
  byOther: { httpStatus: 404 },
  deliveries: [deliveredBefore, delivered],
}

/** A small run in which everything went well, but for what a test changes. */
const run = (changes: Partial<SoakRecords> = {}): SoakRecords => ({
  attempts: [{ ...attempt, outcome: 'unclear' }, attempt],
  sightings: [seen('submitted', 0, 5), seen('processing', 4, 8), seen('submitted', 4, 9), seen('succeed', 10, 12)],
  trespasses: [],
  callbacks: [{ ...toldBefore, answer: 'failed' }, told, toldBefore],
  upstream: [made],
  upstreamDuplicates: [],
  lists: new Map([
    ['anna', ['831']],
    ['bert', []],
  ]),
  audited: [audited],
  store: { states: { succeed: 1 }, waitingEvents: 0, exhaustedEvents: 0 },
  processFaults: [],
  callbackAttempts: 4,
  ...changes,
})

const withDelivery = (change: object): Partial<SoakRecords> => ({
  audited: [{ ...audited, deliveries: [deliveredBefore, { ...delivered, ...change }] }],
})

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
