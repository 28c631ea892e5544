import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { LogWatch } from './gateway-fleet.js'
import { endsWhole, readToEnd } from './mixed/http-caller.js'
import {
  countSockets,
  type Figure,
  flatnessOf,
  type Holdings,
  leftovers,
  ProcessSamples,
  type Sample,
  SOCKET_GROUPS,
  type SocketCounts,
  type SocketGroup,
} from './mixed/process-samples.js'
import { comparedCounts, MetricsWatch } from './mixed/surroundings.js'
import { findViolations } from './soak-checker.js'
import {
  attempt,
  audited,
  delivered,
  deliveredBefore,
  made,
  type ReceivedCallback,
  run,
  seen,
  type SoakRecords,
  told,
  toldBefore,
  Turns,
  withDelivery,
} from './soak-records.js'

describe('the checker of the soak', () => {
  /** Each with what the checker says of it. */
  const BROKEN: readonly (readonly [string, Partial<SoakRecords>, string])[] = [
    // Delivered once each, or visibly given up.
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
      'an end that was not delivered',
      { audited: [{ ...audited, deliveries: [deliveredBefore] }], callbacks: [toldBefore] },
      'the end of task 831 was not delivered',
    ],
    // Everything has come to its end.
    [
      'a create that was never cleared up',
      { store: { ...run().store, states: { succeed: 1, creating: 1 } } },
      'the store still has 1 tasks in the state creating',
    ],
    [
      'a lost create that is not looked up any more',
      { store: { ...run().store, states: { unknown: 2 } } },
      'the store still has 2 tasks in the state unknown',
    ],
    [
      'events that wait in the store',
      { store: { ...run().store, waitingEvents: 1 } },
      'the store still has 1 events to deliver',
    ],
    ['a fault of a process', { processFaults: ['a log holds a secret'] }, 'a log holds a secret'],
    // Readable exactly once, by its owner only.
    [
      'a task that was acknowledged and is nowhere to be found',
      { audited: [], upstream: [], callbacks: [] },
      'the promised task anna 831 was not looked up',
    ],
    [
      'a task that was paid for and is nowhere to be found',
      { attempts: [{ ...attempt, outcome: 'unclear' }], audited: [], callbacks: [] },
      'the promised task anna 831 was not looked up',
    ],
    ['a task that is not listed', { lists: new Map([['anna', []]]) }, 'task 831 of anna is listed 0 times'],
    [
      'a task that is listed twice',
      { lists: new Map([['anna', ['831', '831']]]) },
      'task 831 of anna is listed 2 times',
    ],
    [
      'a task in the list of another owner',
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
      'a task that another owner can read at the end',
      { audited: [{ ...audited, byOther: { httpStatus: 200, taskId: '831' } }] },
      'task 831 of anna can be asked for by others (status 200)',
    ],
    [
      'a task that another owner can read by its external id',
      { audited: [{ ...audited, byOthersExternalId: { httpStatus: 200, taskId: '831' } }] },
      'task 831 of anna is shown to others by its external id',
    ],
    ['a task that another owner could read meanwhile', { trespasses: ['shown to bert'] }, 'shown to bert'],
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
      'a task without a create',
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
      'a receiver with another end than readers see',
      { callbacks: [toldBefore, { ...told, status: 'failed', digest: 'failed' }] },
      'task 831 has several ends: succeed, failed',
    ],
    [
      'events that go back by their own time',
      { callbacks: [{ ...toldBefore, updatedAt: 30 }, told] },
      'task 831 is reported as processing after succeed, by its own time',
    ],
  ]

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

const quiet = { code: null, signal: 'SIGKILL', output: '{"level":30,"msg":"request"}\n', errors: '' } as const

const faultsOf = (change: object, signal: 'SIGTERM' | 'SIGKILL' | 'none' = 'SIGKILL'): readonly string[] => {
  const watch = new LogWatch(
    new Map<string, string | RegExp>([
      ['a key', 'canary-key'],
      ['a token', /eyJ\w+\.eyJ/],
    ]),
  )
  watch.read({ ...quiet, ...change }, signal)
  return watch.faults
}

describe('what the soak looks for in logs', () => {
  it('is not found where there is none', () => {
    expect(faultsOf({})).toEqual([])
    expect(faultsOf({ code: 0 }, 'SIGTERM')).toEqual([])
  })

  it('is found on either output: a secret by its text, or by its form', () => {
    expect(faultsOf({ output: 'canary-key' })).toEqual(['a log holds a secret: a key'])
    expect(faultsOf({ errors: 'Bearer eyJab.eyJcd' })).toEqual(['a log holds a secret: a token'])
  })

  it('is found where a gateway failed, ended by itself, or did not drain', () => {
    const line = '{"level":50,"msg":"boom"}'
    expect(faultsOf({ output: `${quiet.output}${line}\n` })).toEqual([`a gateway failed: ${line}`])
    expect(faultsOf({ code: 1, output: 'why' }, 'none')).toEqual(['a gateway ended by itself (1): why\n'])
    expect(faultsOf({ code: 1 }, 'SIGTERM')).toEqual(['a gateway did not drain (1)'])
  })
})

/** One look each ten seconds; whatever is not given stands still. */
const samplesOf = (figure: Figure, values: readonly number[]): Sample[] =>
  values.map((value, at) => ({
    ...{ residentMiB: 200, heapMiB: 80, sockets: 50, files: 70, timers: 40, resources: 120 },
    ...{ atMs: at * 10_000, [figure]: value },
  }))
const notFlat = (samples: readonly Sample[]): Figure[] =>
  flatnessOf(samples)
    .filter(({ isFlat }) => !isFlat)
    .map(({ figure }) => figure)

/** As many looks as half an hour has; the last two thirds, which are judged, grow by so much in all. */
const LOOKS = 180
const WATCHED = 120
const growing = (growth: number, base: number): number[] =>
  [...Array(LOOKS).keys()].map((at) => base + (at * growth) / (WATCHED - 1))

describe('A figure that is watched', () => {
  it('is flat while it stands still, and while it falls', () => {
    expect(notFlat(samplesOf('sockets', Array<number>(90).fill(50)))).toEqual([])
    expect(
      notFlat(
        samplesOf(
          'residentMiB',
          [...Array(90).keys()].map((at) => 400 - at),
        ),
      ),
    ).toEqual([])
  })

  it.each<readonly [Figure, number]>([
    ['residentMiB', 0.5],
    ['heapMiB', 0.25],
    ['sockets', 0.4],
    ['files', 0.4],
    ['timers', 0.6],
    ['resources', 0.8],
  ])('%s is not flat when it grows by %d a look', (figure, each) => {
    expect(
      notFlat(
        samplesOf(
          figure,
          [...Array(90).keys()].map((at) => 50 + at * each),
        ),
      ),
    ).toEqual([figure])
  })

  it.each<readonly [Figure, number]>([
    ['residentMiB', 16],
    ['heapMiB', 10],
    ['sockets', 5],
    ['files', 5],
    ['timers', 6],
    ['resources', 10],
  ])('%s may grow by %d over the watched time and by no more, whatever it is at', (figure, bound) => {
    for (const base of [20, 2000]) {
      expect(notFlat(samplesOf(figure, growing(bound * 0.95, base)))).toEqual([])
      expect(notFlat(samplesOf(figure, growing(bound * 1.05, base)))).toEqual([figure])
    }
  })

  // The spread of a healthy run in each, as docs/soak.md has it: its highest look above its middle.
  it.each<readonly [Figure, number, number]>([
    ['residentMiB', 10, 16],
    ['heapMiB', 21, 10],
    ['sockets', 6, 5],
    ['files', 6, 5],
    ['timers', 14, 6],
    ['resources', 21, 10],
  ])(
    '%s that spreads by %d as healthy runs do is flat, and not when it also grows by twice %d',
    (figure, spread, bound) => {
      const noise = (at: number): number => spread * (((at * 7919) % 101) / 50 - 1)
      const noisy = (growth: number): number[] => growing(growth, 300).map((value, at) => value + noise(at))
      expect(notFlat(samplesOf(figure, noisy(0)))).toEqual([])
      expect(notFlat(samplesOf(figure, noisy(bound * 2)))).toEqual([figure])
    },
  )

  it('is flat when it only grew while everything warmed up', () => {
    expect(
      notFlat(
        samplesOf(
          'residentMiB',
          [...Array(90).keys()].map((at) => Math.min(300, 100 + at * 10)),
        ),
      ),
    ).toEqual([])
  })

  it('is flat under noise and bursts, and not when it grows beneath them', () => {
    const noisy = [...Array(90).keys()].map((at) => 300 + ((at * 7919) % 60) + (at % 20 === 0 ? 400 : 0))
    expect(notFlat(samplesOf('residentMiB', noisy))).toEqual([])
    expect(
      notFlat(
        samplesOf(
          'residentMiB',
          noisy.map((value, at) => value + at * 2),
        ),
      ),
    ).toEqual(['residentMiB'])
  })

  it('is not flat when it was hardly looked at', () => {
    expect(notFlat(samplesOf('sockets', [50, 50]))).toHaveLength(6)
  })
})

describe('process samples', () => {
  const PATIENCE_MS = 300
  /** More than the system gives out. */
  const NO_SUCH_PROCESS = 2 ** 30
  const NO_PEERS = { local: new Map(), remote: new Map() }

  let directory: string
  let file: string

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'process-samples-'))
    file = join(directory, 'resources.json')
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  const samples = (pid = process.pid): ProcessSamples => new ProcessSamples(pid, file, NO_PEERS, PATIENCE_MS)
  const write = (writtenAtMs: number, timers: number): Promise<void> =>
    writeFile(
      file,
      JSON.stringify({ writtenAtMs, counts: { Timeout: timers }, held: { residentBytes: 1, heapBytes: 1 } }),
    )

  describe('What a process holds', () => {
    it('is what it has written since', async () => {
      await write(Date.now() - 60_000, 1)
      const holdings = samples().holdings()
      await write(Date.now() + 1000, 2)
      expect((await holdings).timers).toBe(2)
    })

    it('is not known of one that lives and does not write any more', async () => {
      await write(0, 1)
      await expect(samples().holdings()).rejects.toThrow(
        `the process ${process.pid} lives, and has written nothing since 1970-01-01T00:00:00.000Z`,
      )
    })

    it('is not known of one that has never written', async () => {
      await expect(samples().look()).rejects.toThrow('has written nothing at all')
    })

    it('is not known of one that is gone', async () => {
      await write(Date.now() + 1000, 1)
      await expect(samples(NO_SUCH_PROCESS).holdings()).rejects.toThrow('ENOENT')
    })
  })
})

const TCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0 20 4 30 10 -1
   3: 0100007F:C351 0100007F:270F 08 00000000:00000000 00:00000000 00000000     0        0 104 1 0 20 4 30 10 -1
   4: 0100007F:C352 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 999 1 0 20 4 30 10 -1
`
const UNIX = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 105
0000000000000000: 00000003 00000000 00000000 0001 03 106 /run/somewhere
`
const PEERS = {
  local: new Map<number, SocketGroup>([[8080, 'callers']]),
  remote: new Map<number, SocketGroup>([[5432, 'store']]),
}

describe('The sockets of a process', () => {
  it('are distinguished by their ports, and those of other processes are not counted', () => {
    const open = ['socket:[101]', 'socket:[102]', 'socket:[103]', 'socket:[104]', 'socket:[105]', 'socket:[106]']
    expect(countSockets(open, { tcp: TCP, unix: UNIX }, PEERS)).toEqual({
      ...{ listening: 1, callers: 1, store: 1, others: 1, own: 2 },
      ...{ scrapes: 0, upstreams: 0, redis: 0, collector: 0, unknown: 0 },
    })
  })

  it('are unknown where no table has them, and what is no socket is left out', () => {
    const counts = countSockets(['socket:[7]', '/dev/null', 'pipe:[101]'], { tcp: TCP, unix: UNIX }, PEERS)
    expect(counts).toMatchObject({ unknown: 1, listening: 0 })
  })
})

const NONE = Object.fromEntries(SOCKET_GROUPS.map((group) => [group, 0])) as SocketCounts
const holding = (sockets: Partial<SocketCounts>, timers = 3): Holdings => ({
  connections: 0,
  sockets: { ...NONE, listening: 2, own: 3, redis: 1, ...sockets },
  timers,
})
const BEFORE = holding({ store: 1 })
const POOLS = { upstreams: 24, store: 10 }

describe('What a gateway holds at rest', () => {
  it('is nothing more than before, or what its pools may keep', () => {
    expect(leftovers(BEFORE, BEFORE, POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ store: 11, upstreams: 24, own: 7 }), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ store: 0, own: 0 }, 0), POOLS)).toEqual([])
  })

  it.each<readonly [SocketGroup, number]>([
    ['listening', 2],
    ['callers', 0],
    ['scrapes', 0],
    ['upstreams', 24],
    ['store', 11],
    ['redis', 1],
    ['collector', 0],
    ['others', 0],
    ['own', 7],
    ['unknown', 0],
  ])('is too much with a single socket (%s) beyond %d', (group, most) => {
    expect(leftovers(BEFORE, holding({ [group]: most }), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ [group]: most + 1 }), POOLS)).toEqual([
      `${most + 1} sockets (${group}), at most ${most} explained`,
    ])
  })

  it('is too much with a connection to an upstream that is gone', () => {
    expect(leftovers(BEFORE, holding({ upstreams: 1 }), { upstreams: 0, store: 10 })).toHaveLength(1)
  })

  it('is too much with a single timer beyond those before the first call', () => {
    expect(leftovers(BEFORE, holding({}, 3), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({}, 4), POOLS)).toEqual(['4 timers, at most 3 explained'])
  })

  it('may have a timer for each connection that the store has more, and no other', () => {
    expect(leftovers(BEFORE, holding({ store: 3 }, 5), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ store: 3 }, 6), POOLS)).toEqual(['6 timers, at most 5 explained'])
    expect(leftovers(BEFORE, holding({ store: 3 }, 5), { upstreams: 0, store: 0 })).toHaveLength(2)
  })
})

describe('metrics watch', () => {
  let server: Server | undefined
  let watch: MetricsWatch | undefined

  afterEach(async () => {
    await watch?.close()
    server?.close()
  })

  async function scraped(status: number, text: string): Promise<MetricsWatch> {
    await watch?.close()
    server?.close()
    server = createServer((_, response) => response.writeHead(status).end(text)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    watch = new MetricsWatch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    await watch.scrape()
    return watch
  }

  const gauge = (name: string, ...samples: readonly string[]): string =>
    [`# HELP ${name} Of a test.`, `# TYPE ${name} gauge`, ...samples.map((sample) => name + sample), ''].join('\n')

  describe('What the soak looks for in metrics', () => {
    it('is not found where nothing is under way', async () => {
      const { faults, scrapes } = await scraped(200, gauge('gateway_requests_in_flight', '{family="chat"} 0'))
      expect([faults, scrapes, watch?.leftAtRest()]).toEqual([[], 1, []])
    })

    it('is found where a single request is, of whatever family', async () => {
      await scraped(200, gauge('gateway_requests_in_flight', '{family="chat"} 0', '{family="video"} 1'))
      expect(watch?.leftAtRest()).toEqual(['gateway_requests_in_flight is 1 at rest'])
    })

    it('is found where a scrape is refused, or cannot be read', async () => {
      expect((await scraped(500, '')).faults).toEqual([expect.stringContaining('status 500')])
      expect((await scraped(200, 'gateway_requests_in_flight 1')).faults).toHaveLength(1)
    })
  })
})

describe('Records of use', () => {
  /** A scrape with so many records, the ends of tasks included. */
  const scraped = (records: number, tasks: number) => ({
    sumOf: (name: string): number =>
      new Map([
        ['gateway_usage_records_total', records],
        ['gateway_tasks_ended_total', tasks],
      ]).get(name) ?? NaN,
  })

  it('are whole where the store holds each that was counted, and one of each task that has ended', () => {
    const held = { stored: 90, endedTasks: 10, storedTasks: 10 }
    expect(comparedCounts(scraped(100, 10), held)).toEqual({ ...held, counted: 90, faults: [] })
  })

  it('are whole where tasks have ended after the last scrape', () => {
    const held = { stored: 90, endedTasks: 15, storedTasks: 15 }
    expect(comparedCounts(scraped(100, 10), held).faults).toEqual([])
  })

  it.each([89, 91])(
    'are not where 90 were counted and %d are stored, however many tasks have ended since',
    (stored) => {
      for (const ended of [10, 15]) {
        const held = { stored, endedTasks: ended, storedTasks: ended }
        expect(comparedCounts(scraped(100, 10), held).faults).toEqual([
          `90 records of calls and answers were counted, and ${stored} are stored`,
        ])
      }
    },
  )

  it.each([14, 16])('are not where 15 tasks have ended and there are %d records of them', (storedTasks) => {
    expect(comparedCounts(scraped(100, 10), { stored: 90, endedTasks: 15, storedTasks }).faults).toEqual([
      `15 tasks have ended, and ${storedTasks} records of them are stored`,
    ])
  })
})

const take = (turns: Turns<string>, count: number): (string | undefined)[] =>
  Array.from({ length: count }, () => turns.next())

describe('What comes in turn', () => {
  it('comes first and then every third time, each as often as the other', () => {
    const taken = take(new Turns(['cut', 'stall'], 3), 12)
    expect(taken.map((item) => item ?? '')).toEqual(['cut', '', '', 'stall', '', '', 'cut', '', '', 'stall', '', ''])
  })

  it('comes each time where it is to', () => {
    expect(take(new Turns(['one', 'two'], 1), 3)).toEqual(['one', 'two', 'one'])
  })
})

const CHAT = '/v1/chat/completions'
const END = 'data: {"choices":[]}\n\ndata: [DONE]\n\n'

describe('The end of an event stream', () => {
  it('is known in whatever pieces it comes', async () => {
    const text = 'data: {"choices":[]}\n\n'.repeat(100) + END
    for (const bytes of [1, 7, 100, 10_000]) {
      const pieces = Array.from({ length: Math.ceil(text.length / bytes) }, (_, at) =>
        Buffer.from(text.slice(at * bytes, (at + 1) * bytes)),
      )
      expect(endsWhole(CHAT, await readToEnd(Readable.from(pieces)))).toBe(true)
      expect(endsWhole(CHAT, await readToEnd(Readable.from(pieces.slice(0, -1))))).toBe(false)
    }
  })

  it('is all that is kept of it', async () => {
    const pieces = (function* () {
      for (let piece = 0; piece < 100; piece += 1) yield Buffer.alloc(100_000, 'x')
    })()
    expect((await readToEnd(Readable.from(pieces))).length).toBeLessThan(1000)
  })

  it('is not decided by text within a line', () => {
    expect(endsWhole(CHAT, '\ndata: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n')).toBe(false)
    expect(endsWhole(CHAT, `\ndata: {"content":"event: error data: {\\"error\\""}\n\n${END}`)).toBe(true)
  })
})
