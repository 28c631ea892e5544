import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../../src/config/config-store.js'
import { collectGarbage } from '../../src/overload/process-memory.js'
import { eventually } from '../support/eventually.js'
import { CHAT, FullGateway } from '../support/failing-calls.js'
import { type RawAnswer, sendRaw } from '../support/raw-http.js'

/** Served at once while memory is short. */
const PLACES = 16

let lab: FullGateway
afterEach(() => lab.close())

async function fillAll(): Promise<{ readonly answered: Promise<RawAnswer[]> }> {
  lab.hold()
  const answered = Promise.all(Array.from({ length: PLACES }, () => sendRaw(lab.url, CHAT)))
  await eventually(() => lab.held.length === PLACES)
  return { answered }
}

describe('A process that is short of memory', () => {
  beforeEach(async () => {
    // Less than any process of Node has: memory is short from the first look on.
    lab = await FullGateway.start({ admission: { memoryBytes: 67_108_864 } })
    await eventually(() => lab.admission.memoryLoad.isHigh)
  })

  it.each([
    ['/v1/chat/completions', 503, { error: { type: 'overloaded_error', code: 'overloaded' } }],
    ['/v1/messages', 529, { type: 'error', error: { type: 'overloaded_error' } }],
    ['/vidgen/v1/videos/text2video', 503, { code: 5001 }],
  ])(
    'serves some at once, and asks a further caller of %s to come back in five seconds',
    async (path, status, body) => {
      const { answered } = await fillAll()
      const refused = await sendRaw(lab.url, { path, body: '{}', headers: { 'x-request-id': 'further' } })
      expect([refused.status, refused.headers['retry-after']]).toEqual([status, '5'])
      expect(JSON.parse(refused.text)).toMatchObject(body)
      expect(refused.text).toContain('The gateway is short of memory.')
      expect(lab.admission.refused).toEqual({ memory: 1, concurrency: 0, loop_delay: 0 })
      expect(await lab.gateway.logLine('further')).toMatchObject({ status, failure: { kind: 'overloaded' } })
      lab.empty()
      expect(new Set((await answered).map((answer) => answer.status))).toEqual(new Set([200]))
    },
  )

  it('serves the next caller as soon as one of them is done', async () => {
    const { answered } = await fillAll()
    expect((await sendRaw(lab.url, CHAT)).status).toBe(503)
    lab.empty()
    await answered
    await eventually(() => lab.admission.underWay < PLACES)
    expect((await sendRaw(lab.url, CHAT)).status).toBe(200)
  })
})

const MIB = 1_048_576

/** What is left to a gateway at least, however much its documents may use. */
const LEAST_BYTES = 1024 * MIB

describe('A process that is not told how much memory it may use', () => {
  it('has what the processes that read its documents may not use, also when these become fewer', async () => {
    // More than any machine has.
    lab = await FullGateway.start({ documents: { processes: 64, memoryBytes: 68_719_476_736 } })
    const leastShare = (0.8 * process.memoryUsage.rss()) / LEAST_BYTES
    await eventually(() => lab.admission.memoryLoad.share > leastShare)

    const store = lab.gateway.application.get(ConfigStore)
    const config = { ...store.current, documents: { ...store.current.documents, processes: 1, memoryBytes: 128 * MIB } }
    expect(await store.reload(() => Promise.resolve({ config, file: '' }))).toMatchObject({ applied: true })
    await eventually(() => lab.admission.memoryLoad.share < leastShare / 2)
  })
})

describe('A process that uses more memory than its high watermark', () => {
  /** Memory that is used, in two pieces of 256 MiB that can be given back. */
  const ballast: Buffer[] = []
  /** Above both watermarks with both pieces, between them with one, below them with none. */
  beforeEach(async () => {
    // What earlier suites have left must not go while this one watches: some goes only when others are gone.
    for (let time = 0; time < 3; time++) collectGarbage()
    const usedBytes = process.memoryUsage.rss()
    const memoryBytes = usedBytes + 512 * MIB
    const shares = {
      memoryHighShare: (usedBytes + 384 * MIB) / memoryBytes,
      memoryLowShare: (usedBytes + 128 * MIB) / memoryBytes,
    }
    lab = await FullGateway.start({ admission: { memoryBytes, ...shares } })
  })
  afterEach(() => {
    ballast.length = 0
  })

  function giveBack(): void {
    ballast.pop()
    collectGarbage()
  }

  it('refuses until it uses less than the low one, and then serves as many as before, without a restart', async () => {
    expect((await sendRaw(lab.url, CHAT)).status).toBe(200)
    for (const piece of [1, 2]) ballast.push(Buffer.alloc(256 * MIB, piece))
    await eventually(() => lab.admission.memoryLoad.isHigh)
    const high = lab.admission.memoryLoad.share
    const { answered } = await fillAll()
    expect((await sendRaw(lab.url, CHAT)).status).toBe(503)

    giveBack()
    await eventually(() => lab.admission.memoryLoad.share < high - 0.1)
    expect(lab.admission.memoryLoad.isHigh).toBe(true)
    const refused = await sendRaw(lab.url, CHAT)
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])

    giveBack()
    await eventually(() => !lab.admission.memoryLoad.isHigh)
    // The places of a shortage are all taken still: whoever is let in now has one beyond them.
    const further = Array.from({ length: 3 }, () => sendRaw(lab.url, CHAT))
    await eventually(() => lab.held.length === PLACES + 3)
    lab.empty()
    const statuses = [...(await answered), ...(await Promise.all(further))].map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(lab.admission.refused).toEqual({ memory: 2, concurrency: 0, loop_delay: 0 })
  })
})
