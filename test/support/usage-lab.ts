import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { type ImggenSimulator, startImggenSimulator } from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import { startP4Simulator } from '@multi-model-gateway/sandbox/p4/p4.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { parse } from 'yaml'
import { Database } from '../../src/storage/database.js'
import { eventually } from './eventually.js'
import { startGateway, TEST_KEY, type TestGateway } from './gateway.js'
import { UPSTREAM_KEY } from './p1-gateway.js'
import { P2_UPSTREAM_KEY } from './p2-gateway.js'
import { type RawRequest, sendRaw } from './raw-http.js'
import { dataDirectory } from './stores.js'
import { OTHER_KEY, POLLED_OFTEN, VIDGEN_ACCESS, VIDGEN_CREDENTIALS } from './task-gateways.js'

/** A record as callers see it. */
export interface ShownRecord {
  readonly id: string
  readonly at: string
  readonly request_id: string | null
  readonly kind: string
  readonly route: string
  readonly model: string | null
  readonly channel: string | null
  readonly outcome: string
  readonly duration_ms: number | null
  readonly units: Readonly<Record<string, number>>
  readonly reported: Readonly<Record<string, unknown>> | null
  readonly estimated: Readonly<Record<string, unknown>> | null
  readonly pricing: string
  readonly cost: string | null
}

export interface UsageAnswer<Body> {
  readonly status: number
  readonly body: Body
}

/** The price table that operators begin with. */
export const EXAMPLE_PRICES = (
  parse(readFileSync(new URL('../../gateway.example.yaml', import.meta.url), 'utf8')) as { readonly prices: object[] }
).prices

/** Asks as a caller does. */
export async function getUsage<Body>(
  { url }: { readonly url: string },
  query = '',
  key = TEST_KEY,
): Promise<UsageAnswer<Body>> {
  const headers = { authorization: `Bearer ${key}` }
  const { status, text } = await sendRaw(url, { method: 'GET', path: `/v1/usage${query}`, headers })
  return { status, body: JSON.parse(text) as Body }
}

export async function recordsOf(gateway: { readonly url: string }, key = TEST_KEY): Promise<readonly ShownRecord[]> {
  const { body } = await getUsage<{ data: readonly ShownRecord[] }>(gateway, '/records?limit=1000', key)
  return body.data
}

/** The first record for which this holds, once there is one: a call is over a moment after its answer. */
export async function recordWhere(
  gateway: { readonly url: string },
  holds: (record: ShownRecord) => boolean,
): Promise<ShownRecord> {
  let found: ShownRecord | undefined
  await eventually(async () => {
    found = (await recordsOf(gateway)).find(holds)
    return found !== undefined
  })
  return found as ShownRecord
}

/** A gateway with a channel to every kind of upstream, the example's prices, and a store of its own. */
export interface UsageLab {
  readonly gateway: TestGateway
  readonly p1: Simulator
  readonly m1: Simulator
  readonly imggen: ImggenSimulator
  readonly vidgen: VidgenSimulator
  /** Sends a request and gives what was recorded of it. */
  recorded(request: RawRequest): Promise<{ readonly record: ShownRecord; readonly text: string }>
  close(): Promise<void>
}

export async function startUsageLab(sections: object = {}): Promise<UsageLab> {
  const options = { apiKey: UPSTREAM_KEY }
  const [p1, p2, p3, p4, m1, vidgen, imggen] = await Promise.all([
    startP1Simulator(options),
    startP2Simulator({ apiKey: P2_UPSTREAM_KEY }),
    startP3Simulator(options),
    startP4Simulator(options),
    startM1Simulator(options),
    startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' }),
    startImggenSimulator({ ...options, stepMs: 'manual' }),
  ])
  const directory = await dataDirectory()
  const gateway = await startGateway({
    keys: [
      { id: 'test', key: TEST_KEY },
      { id: 'other', key: OTHER_KEY },
    ],
    channels: [
      { id: 'p1-main', provider: 'p1', baseUrl: p1.url, credentials: UPSTREAM_KEY },
      { id: 'p2-main', provider: 'p2', baseUrl: p2.url, credentials: P2_UPSTREAM_KEY, models: ['p2-tts'] },
      { id: 'p3-main', provider: 'p3', baseUrl: p3.url, credentials: UPSTREAM_KEY },
      { id: 'p4-main', provider: 'p4', baseUrl: `${p4.url}/openai`, credentials: UPSTREAM_KEY, priority: 1 },
      { id: 'm1-main', provider: 'm1', baseUrl: m1.url, credentials: UPSTREAM_KEY },
      { id: 'vidgen-main', provider: 'vidgen', baseUrl: vidgen.url, credentials: VIDGEN_CREDENTIALS },
      { id: 'imggen-main', provider: 'imggen', baseUrl: imggen.url, credentials: UPSTREAM_KEY },
    ],
    sections: {
      usage: { store: true },
      prices: EXAMPLE_PRICES,
      tasks: POLLED_OFTEN,
      ssrf: { allow: [new URL(p3.url).host] },
      ...sections,
    },
    dataDirectory: directory,
  })
  // As an operator's gateway does when it begins to listen.
  await gateway.application.get(Database).open()
  let count = 0
  return {
    gateway,
    p1,
    m1,
    imggen,
    vidgen,
    recorded: async (request) => {
      const requestId = `usage-${++count}`
      const { text } = await sendRaw(gateway.url, {
        ...request,
        headers: { ...request.headers, 'x-request-id': requestId },
      })
      return { text, record: await recordWhere(gateway, ({ request_id: id }) => id === requestId) }
    },
    close: async () => {
      await gateway.close()
      await Promise.all([p1, p2, p3, p4, m1, vidgen, imggen].map((simulator) => simulator.close()))
      await rm(directory, { recursive: true })
    },
  }
}
