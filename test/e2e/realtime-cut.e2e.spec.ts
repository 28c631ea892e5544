import { rm } from 'node:fs/promises'
import { afterEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { Readiness } from '../../src/observability/readiness.js'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { UPSTREAM_KEY } from '../support/p1-gateway.js'
import { audioOf, type RealtimeEvent, RealtimeProbe, typesOf } from '../support/realtime-probe.js'
import { appendAudio, spoken } from '../support/spoken-turn-lab.js'
import { dataDirectory, STORE_START_MS } from '../support/stores.js'
import { EXAMPLE_PRICES, recordsOf, recordWhere, type ShownRecord } from '../support/usage-lab.js'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Lab {
  readonly gateway: TestGateway
  /** Ends the gateway and starts another one on the same store. */
  readonly restarted: () => Promise<TestGateway>
}

async function start(): Promise<Lab> {
  const p1 = await startP1Simulator({ apiKey: UPSTREAM_KEY })
  const directory = await dataDirectory()
  closers.push(
    () => p1.close(),
    () => rm(directory, { recursive: true }),
  )
  let gateway: TestGateway
  const open = async (): Promise<TestGateway> => {
    gateway = await startGateway({
      channels: [{ id: 'p1-main', provider: 'p1', baseUrl: p1.url, credentials: UPSTREAM_KEY }],
      sections: { usage: { store: true }, prices: EXAMPLE_PRICES },
      dataDirectory: directory,
    })
    return gateway
  }
  const first = await open()
  closers.push(() => gateway.close())
  return {
    gateway: first,
    restarted: async () => {
      await first.close()
      return open()
    },
  }
}

/** An answer that begins with a word and its sound, and stops there, or whatever else the text asks for. */
async function asked({ url }: TestGateway, text: string): Promise<RealtimeProbe> {
  const probe = await RealtimeProbe.open({ url: url.replace('http', 'ws'), key: TEST_KEY })
  const content = [{ type: 'input_text', text }]
  probe.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
  probe.send({ type: 'response.create' })
  return probe
}

async function begun(gateway: TestGateway): Promise<{ probe: RealtimeProbe; events: readonly RealtimeEvent[] }> {
  const probe = await asked(gateway, '#stall')
  return { probe, events: await probe.until('response.audio.delta') }
}

const isSession = ({ kind }: ShownRecord): boolean => kind === 'request'

/** All of them, once the session is over. */
async function answersOf(gateway: TestGateway): Promise<readonly ShownRecord[]> {
  await recordWhere(gateway, isSession)
  return (await recordsOf(gateway)).filter((record) => !isSession(record))
}

/** Of what the client has heard: 24,000 samples of two bytes to a second, 20 tokens to a second. */
const heardTokens = (events: readonly RealtimeEvent[]): number => Math.ceil(audioOf(events).length / 2400)

/** One answer, which is paid as far as it was heard. */
async function expectEstimated(gateway: TestGateway, outcome: string, events: readonly RealtimeEvent[]): Promise<void> {
  const records = await answersOf(gateway)
  expect(records).toMatchObject([{ outcome, reported: null, pricing: 'priced' }])
  expect(records[0]?.units['audio_output_tokens']).toBe(heardTokens(events))
}

describe('A realtime answer that never comes to its end', () => {
  it(
    'is paid by the client who left in the middle of it, as an estimate',
    async () => {
      const { gateway } = await start()
      const { probe, events } = await begun(gateway)
      probe.socket.close()
      await probe.closed
      const [record, ...others] = await answersOf(gateway)
      expect(others).toEqual([])
      const audio = heardTokens(events)
      expect(audio).toBeGreaterThan(0)
      const text = typesOf(events).filter((type) => type === 'response.audio_transcript.delta').length
      expect(record).toMatchObject({
        kind: 'response',
        outcome: 'caller_left',
        model: 'gpt-realtime',
        channel: 'p1-main',
        reported: null,
        estimated: { output_tokens: text + audio, output_token_details: { text_tokens: text, audio_tokens: audio } },
        units: { completion_tokens: text + audio, audio_output_tokens: audio },
        pricing: 'priced',
      })
      expect(record?.units['prompt_tokens']).toBeGreaterThan(0)
      expect(Number(record?.cost)).toBeGreaterThan(0)
    },
    STORE_START_MS,
  )

  it(
    'is paid though the upstream dropped it',
    async () => {
      const { gateway } = await start()
      const probe = await asked(gateway, '#drop')
      const events = await probe.until('response.audio.delta')
      await probe.closed
      await expectEstimated(gateway, 'upstream_failed', events)
    },
    STORE_START_MS,
  )

  it(
    'is stored though the gateway went down with it',
    async () => {
      const { gateway, restarted } = await start()
      const { probe, events } = await begun(gateway)
      const readiness = gateway.application.get(Readiness)
      readiness.announceDraining()
      readiness.announceGraceOver()
      expect(await probe.closed).toMatchObject({ code: 1001 })
      const next = await restarted()
      await expectEstimated(next, 'refused', events)
    },
    STORE_START_MS,
  )

  it(
    'is stored with the figures of its upstream where it ends within the grace time of a gateway that goes down',
    async () => {
      const { gateway, restarted } = await start()
      const probe = await asked(gateway, '#words=40')
      await probe.until('response.audio.delta')
      gateway.application.get(Readiness).announceDraining()
      const { response } = (await probe.next('response.done')) as { response: { status: string; usage: unknown } }
      expect(await probe.closed).toMatchObject({ code: 1001 })
      expect(response.status).toBe('completed')
      const next = await restarted()
      expect(await answersOf(next)).toMatchObject([{ outcome: 'ok', reported: response.usage }])
    },
    STORE_START_MS,
  )

  it(
    'has taken the audio that was said for it',
    async () => {
      const { gateway } = await start()
      const probe = await RealtimeProbe.open({ url: gateway.url.replace('http', 'ws'), key: TEST_KEY })
      const session = { instructions: '#stall', turn_detection: null }
      probe.send({ type: 'session.update', session })
      await probe.next('session.updated')
      const audio = spoken()
      appendAudio(probe, audio)
      probe.send({ type: 'input_audio_buffer.commit' })
      probe.send({ type: 'response.create' })
      await probe.next('response.audio.delta')
      probe.socket.close()
      await probe.closed
      const [record] = await answersOf(gateway)
      expect(record?.units['audio_input_tokens']).toBe(Math.round(audio.length / 4800))
    },
    STORE_START_MS,
  )

  it(
    'is paid by the figures of its upstream once it has come to its end, with what was heard beside them',
    async () => {
      const { gateway } = await start()
      const probe = await asked(gateway, '#words=3')
      const events = await probe.until('response.done')
      const { response } = events.at(-1) as unknown as { response: { usage: Record<string, number> } }
      probe.socket.close()
      await probe.closed
      const records = await answersOf(gateway)
      expect(records).toMatchObject([
        {
          outcome: 'ok',
          units: { prompt_tokens: response.usage['input_tokens'], completion_tokens: response.usage['output_tokens'] },
          reported: response.usage,
          pricing: 'priced',
        },
      ])
      const audio = heardTokens(events)
      const text = typesOf(events).filter((type) => type === 'response.audio_transcript.delta').length
      expect(records[0]?.estimated).toMatchObject({
        output_tokens: text + audio,
        output_token_details: { text_tokens: text, audio_tokens: audio },
      })
      expect(audio).toBeGreaterThan(0)
    },
    STORE_START_MS,
  )
})
