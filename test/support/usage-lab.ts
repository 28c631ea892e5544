import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { describe, expect, it } from '@jest/globals'
import { type ImggenSimulator, startImggenSimulator } from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import { startP4Simulator } from '@multi-model-gateway/sandbox/p4/p4.simulator.js'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { parse } from 'yaml'
import { Metrics } from '../../src/observability/metrics.js'
import { Database } from '../../src/storage/database.js'
import { eventually } from './eventually.js'
import { type RawRequest, sendRaw, startGateway, TEST_KEY, type TestGateway } from './gateway.js'
import { P2_UPSTREAM_KEY, UPSTREAM_KEY } from './provider-gateways.js'
import { dataDirectory } from './stores.js'
import { OTHER_KEY, POLLED_OFTEN, VIDGEN_ACCESS, VIDGEN_CREDENTIALS } from './task-gateways.js'

/** What an upstream answers that says more or less of what was used than the simulators do. */
const answer = (type: string, body: string): Fault => ({
  kind: 'status',
  status: 200,
  headers: { 'content-type': type },
  body,
})

const jsonAnswer = (value: object): Fault => answer('application/json', JSON.stringify(value))

const PIECES = ['Hello', ' there', '.']

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, fields: object = {}): string => `event: ${type}\n${frame({ type, ...fields })}`

/** A chat completion that says "Hello there." */
export const completion = (usage?: object | null): Fault =>
  jsonAnswer({
    id: 'chatcmpl-1',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there.' }, finish_reason: 'stop' }],
    ...(usage === undefined ? {} : { usage }),
  })

/** The same in three pieces, and whatever its upstream says of its use. */
export const completionChunks = (usage?: object): Fault => {
  const pieces = PIECES.map((content) => frame({ choices: [{ index: 0, delta: { content } }] }))
  const end = frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  const figures = usage === undefined ? '' : frame({ choices: [], usage })
  return answer('text/event-stream', `${pieces.join('')}${end}${figures}data: [DONE]\n\n`)
}

/** Some audio as events of P1's own, and whatever the last one says of its use. */
export const speechEvents = (audio: Buffer, usage?: object): Fault => {
  const done = { type: 'speech.audio.done', ...(usage === undefined ? {} : { usage }) }
  const events = [{ type: 'speech.audio.delta', audio: audio.toString('base64') }, done]
  return answer('text/event-stream', `${events.map(frame).join('')}data: [DONE]\n\n`)
}

/** The same words as a transcript, without a figure. */
export const wholeTranscript = (): Fault => jsonAnswer({ text: 'Hello there.' })

/** In three pieces, and whatever its upstream says of its use. */
export const transcriptEvents = (usage?: object): Fault => {
  const pieces = PIECES.map((delta) => frame({ type: 'transcript.text.delta', delta }))
  const figures = usage === undefined ? {} : { usage }
  const done = frame({ type: 'transcript.text.done', text: PIECES.join(''), ...figures })
  return answer('text/event-stream', `${pieces.join('')}${done}data: [DONE]\n\n`)
}

/** The same of the messages family. */
export const wholeMessage = (usage?: object): Fault =>
  jsonAnswer({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'Hello there.' }],
    stop_reason: 'end_turn',
    ...(usage === undefined ? {} : { usage }),
  })

/** In three pieces, with what is said of its use at the beginning and at the end. */
export function messageEvents(start?: object, end?: object): Fault {
  const used = (usage: object | undefined): object => (usage === undefined ? {} : { usage })
  const pieces = PIECES.map((text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }))
  const events = [
    event('message_start', { message: { id: 'msg_1', role: 'assistant', content: [], ...used(start) } }),
    ...pieces,
    event('message_delta', { delta: { stop_reason: 'end_turn' }, ...used(end) }),
    event('message_stop'),
  ]
  return answer('text/event-stream', events.join(''))
}

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
  readonly reason: string | null
  readonly requests: number
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
  await eventually(
    async () => {
      found = (await recordsOf(gateway)).find(holds)
      return found !== undefined
    },
    () => recordsOf(gateway),
  )
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

/** Of every record made so far: each has a price, none holds a secret. `count` = how many there must be. */
export function describeAllRecords(lab: () => UsageLab, count: number): void {
  describe('Every record so far', () => {
    it('has a price in the example’s table', async () => {
      const records = await recordsOf(lab().gateway)
      expect(records).toHaveLength(count)
      expect(records.filter(({ pricing }) => pricing === 'unpriced')).toEqual([])
      const text = await lab().gateway.application.get(Metrics).registry.metrics()
      expect(text).not.toMatch(/^gateway_usage_unpriced_total\{/m)
    })

    it('holds no secret', async () => {
      const text = JSON.stringify(await recordsOf(lab().gateway))
      expect(text).not.toMatch(new RegExp(`canary|${TEST_KEY}`))
    })
  })
}
