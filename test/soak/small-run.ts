import type {
  AuditedTask,
  CreateAttempt,
  ReceivedCallback,
  Sighting,
  SoakRecords,
  UpstreamCreate,
} from './soak-records.js'

// One task: ordered twice under one external id, made once, seen until its end, and told of.
export const attempt: CreateAttempt = {
  owner: 'anna',
  marker: 'm-1',
  externalId: 'order-1',
  idempotencyKey: 'key-1',
  wantsCallbacks: true,
  outcome: 'acknowledged',
  taskId: '831',
}
export const made: UpstreamCreate = {
  taskId: '831',
  owner: 'anna',
  marker: 'm-1',
  upstreamExternalId: 'aaaa.order-1',
  externalId: 'order-1',
}
export const seen = (
  status: Sighting['status'],
  startedAtMs: number,
  endedAtMs: number,
  digest = status,
): Sighting => ({
  ...{ taskId: '831', status, startedAtMs, endedAtMs, digest },
})
export const told: ReceivedCallback = {
  ...{ webhookId: 'msg_2', taskId: '831', status: 'succeed', updatedAt: 20, digest: 'succeed' },
  ...{ isSigned: true, answer: 'taken' },
}
export const toldBefore: ReceivedCallback = {
  ...{ ...told, webhookId: 'msg_1', status: 'processing', updatedAt: 10, digest: 'processing' },
}
export const delivered = { webhookId: 'msg_2', attempts: 1, isDelivered: true, isExhausted: false }
export const deliveredBefore = { ...delivered, webhookId: 'msg_1' }
export const audited: AuditedTask = {
  ...{ owner: 'anna', taskId: '831', externalId: 'order-1', status: 'succeed' },
  byId: { httpStatus: 200, taskId: '831' },
  byExternalId: { httpStatus: 200, taskId: '831' },
  byOther: { httpStatus: 404 },
  deliveries: [deliveredBefore, delivered],
}

/** A small run in which everything went well, but for what a test changes. */
export const run = (changes: Partial<SoakRecords> = {}): SoakRecords => ({
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

export const withDelivery = (change: object): Partial<SoakRecords> => ({
  audited: [{ ...audited, deliveries: [deliveredBefore, { ...delivered, ...change }] }],
})
