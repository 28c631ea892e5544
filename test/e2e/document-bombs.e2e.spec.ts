import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pace } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { type Bomb, BOMBS, EXHAUSTING } from '../support/document-bombs.js'
import { eventually, promised } from '../support/eventually.js'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, TEST_KEY } from '../support/gateway.js'
import { childrenOf, isAlive } from '../support/parser-pools.js'

const MEBIBYTE = 1_048_576
/** For all others: they take two seconds of an idle machine, with another beside them. */
const PATIENT_MS = 120_000
/** For bombs whose reader ends only when its time or its memory is used up. */
const SHORT_MS = 3_000
/** For the upload and the way back, on a machine that does other things as well. */
const SLACK_MS = 10_000
const DOCUMENTS = { processes: 2, queue: 2, defaultTimeoutMs: PATIENT_MS, memoryBytes: 320 * MEBIBYTE, cacheMs: 0 }
/** At the same time; as many as are read at once. */
const CONCURRENT_UPLOADS = 2
/** Callers who leave the machine room for documents. */
const CALL_EVERY_MS = 20
const CALLS_BEFORE = 100
const STORM_LIMIT_MS = 900_000

const CALL_HEADERS = { authorization: `Bearer ${TEST_KEY}` }

let simulator: Simulator
let gateway: GatewayProcess
let url: string

interface Landing {
  readonly status: number
  readonly code: unknown
  readonly ms: number
}

/** Sends the document as the body of a request. */
async function parse(body: Buffer | string, contentType: string): Promise<Landing> {
  const sentAtMs = performance.now()
  const headers = { ...CALL_HEADERS, 'content-type': contentType }
  const response = await fetch(`${url}/v1/document/parse`, { method: 'POST', headers, body })
  const { code } = (await response.json()) as { code?: unknown }
  return { status: response.status, code, ms: performance.now() - sentAtMs }
}

/** Milliseconds that one chat call took; the next may follow at once. */
async function chat(): Promise<number> {
  await pace(CALL_EVERY_MS)
  const headers = { ...CALL_HEADERS, 'content-type': 'application/json' }
  const sentAtMs = performance.now()
  const response = await fetch(`${url}${CHAT_PATH}`, { method: 'POST', headers, body: chatText('#chunks=1') })
  await response.arrayBuffer()
  expect(response.status).toBe(200)
  return performance.now() - sentAtMs
}

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

const gatewayPid = (): number => gateway.child.pid ?? 0

/** Sorted, so that a share of them can be looked up. */
function quantile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? NaN
}

const landings = new Map<string, Landing>()
const calm: number[] = []
const during: number[] = []
let residentBefore = 0
let residentPeak = 0

/** The bombs one after the other in each of the concurrent uploads, and chat requests meanwhile, one after the other. */
async function storm(bombs: readonly Bomb[]): Promise<void> {
  const waiting: { bomb: Bomb; bytes: Buffer }[] = bombs.map((bomb) => ({ bomb, bytes: bomb.make() }))
  const expectedLandings = landings.size + bombs.length
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const landing = parse(next.bytes, next.bomb.contentType).catch((error: unknown) => ({
        status: 0,
        code: error,
        ms: 0,
      }))
      landings.set(next.bomb.name, await landing)
    }
  }
  const uploads = Array.from({ length: CONCURRENT_UPLOADS }, worker)
  while (landings.size < expectedLandings) {
    during.push(await chat())
    residentPeak = Math.max(residentPeak, residentBytes(gatewayPid()))
  }
  await Promise.all(uploads)
}

/** Writes the configuration into the directory of the gateway. */
async function configure(directory: string, parseMs: number): Promise<void> {
  const configuration = {
    auth: { keys: [{ id: 'test', key: TEST_KEY }] },
    channels: [{ id: 'only', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-canary-key' }],
    documents: { ...DOCUMENTS, parseMs },
  }
  await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
}

const isExhausting = ({ statuses }: Bomb): boolean => statuses === EXHAUSTING

beforeAll(async () => {
  simulator = await startP1Simulator({ apiKey: 'upstream-canary-key' })
  const directory = await emptyDirectory()
  await configure(directory, PATIENT_MS)
  gateway = runGateway(directory)
  url = await gateway.listening()
  for (let call = 0; call < CALLS_BEFORE; call += 1) await chat()
  expect(childrenOf(gatewayPid())).toEqual([])
  expect(await parse('A line.', 'text/plain')).toMatchObject({ status: 200, code: 0 })
  // Harmless, but as large as the largest bomb: receiving it has its price, once.
  for (let upload = 0; upload < CONCURRENT_UPLOADS; upload += 1) {
    expect(await parse(Buffer.alloc(20 * MEBIBYTE), 'application/octet-stream')).toMatchObject({ status: 415 })
  }
  for (let call = 0; call < CALLS_BEFORE; call += 1) {
    calm.push(await chat())
    residentBefore = Math.max(residentBefore, residentBytes(gatewayPid()))
  }
  await storm(BOMBS.filter((bomb) => !isExhausting(bomb)))
  await configure(directory, SHORT_MS)
  gateway.child.kill('SIGHUP')
  await gateway.said(/"configuration reloaded"/)
  await storm(BOMBS.filter(isExhausting))
}, STORM_LIMIT_MS)
afterAll(async () => {
  await gateway.close()
  await simulator.close()
})

describe('A bomb is answered within its time', () => {
  it.each(BOMBS.map((bomb) => [bomb.name, bomb.statuses, bomb] as const))('%s is %j', (name, statuses, bomb) => {
    const landing = landings.get(name)
    expect(statuses).toContain(landing?.status)
    expect(landing?.ms).toBeLessThan(promised(isExhausting(bomb) ? SHORT_MS + SLACK_MS : SLACK_MS))
    expect(landing?.code === 0).toBe(landing?.status === 200)
  })
})

describe('While bombs fall', () => {
  it('the gateway needs no more memory than before', () => {
    expect(residentPeak - residentBefore).toBeLessThan(50 * MEBIBYTE)
  })

  it('chat calls are answered as fast as before, but for what shared processors cost', () => {
    expect(during.length).toBeGreaterThan(CALLS_BEFORE)
    expect(quantile(during, 0.5)).toBeLessThan(3 * quantile(calm, 0.5) + 20)
    expect(quantile(during, 0.95)).toBeLessThan(3 * quantile(calm, 0.95) + 100)
  })

  it('the gateway itself stays up, and reads the next document', async () => {
    expect(await parse('# A title', 'text/markdown')).toMatchObject({ status: 200, code: 0 })
    expect(childrenOf(gatewayPid()).length).toBeLessThanOrEqual(DOCUMENTS.processes)
  })
})

describe('When the gateway ends', () => {
  it('none of its processes is left, though one was still reading', async () => {
    const children = childrenOf(gatewayPid())
    expect(children.length).toBeGreaterThan(0)
    const reading = parse(BOMBS[0]?.make() ?? '', 'application/pdf').catch(() => undefined)
    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).toBe(0)
    await reading
    await eventually(() => children.every((child) => !isAlive(child)))
  })
})
