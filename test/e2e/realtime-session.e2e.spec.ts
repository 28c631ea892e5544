import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  type RealtimeSimulator,
  startRealtimeSimulator,
} from '@multi-model-gateway/sandbox/realtime/realtime.simulator.js'
import type { RealtimeDialect } from '../../src/dialects/realtime/dialect.js'
import { eventually } from '../support/eventually.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { audioOf } from '../support/realtime-probe.js'
import { REALTIME_UPSTREAM_KEY, realtimeChannel } from '../support/realtime-upstream.js'
import { openai4Client, openai6Client, plainClient, type RealtimeClient } from '../support/sdk-clients.js'
import { startTlsProxy } from '../support/tls-proxy.js'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const CLIENTS = [
  ['a plain client', plainClient],
  ['openai 4.104.0', openai4Client],
  ['openai 6.49.0', openai6Client],
] as const
const DIALECTS = ['ga', 'beta'] as const
const COMBINATIONS = CLIENTS.flatMap(([name, open]) => DIALECTS.map((upstream) => [name, upstream, open] as const))

const INSTRUCTIONS = 'Be brief.'
const SETTINGS = {
  ga: {
    type: 'realtime',
    output_modalities: ['audio'],
    instructions: INSTRUCTIONS,
    audio: {
      input: { format: { type: 'audio/pcm', rate: 24_000 }, turn_detection: null },
      output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'alloy' },
    },
  },
  beta: {
    modalities: ['text', 'audio'],
    instructions: INSTRUCTIONS,
    voice: 'alloy',
    input_audio_format: 'pcm16',
    output_audio_format: 'pcm16',
    turn_detection: null,
    temperature: 0.8,
    tools: [],
    tool_choice: 'auto',
  },
}
const WISH = { ga: { output_modalities: ['audio'] }, beta: { modalities: ['text', 'audio'] } }

/** Two seconds of something audible, in the pieces of 100 ms that clients send. */
const AUDIO = Buffer.from(Int16Array.from({ length: 48_000 }, (_, at) => 9000 * Math.sin(at / 9)).buffer)
const PIECE_BYTES = 4800

interface Answer {
  readonly types: readonly string[]
  readonly transcript: string
  readonly audio: string
  readonly usage: unknown
}

interface House {
  readonly gateway: TestGateway
  readonly simulator: RealtimeSimulator
  readonly url: string
}

async function startHouse(realtimeDialect: RealtimeDialect): Promise<House> {
  const simulator = await startRealtimeSimulator({ apiKey: REALTIME_UPSTREAM_KEY, dialect: realtimeDialect })
  closers.push(() => simulator.close())
  const gateway = await startGateway({ channels: [realtimeChannel(simulator, { options: { realtimeDialect } })] })
  closers.push(() => gateway.close())
  const proxy = await startTlsProxy(gateway.url)
  closers.push(() => proxy.close())
  return { gateway, simulator, url: proxy.url }
}

const checksum = (audio: Buffer): string => createHash('sha1').update(audio).digest('hex').slice(0, 12)

/** The four steps of the specification, each begun when the one before has been answered. */
async function converse(client: RealtimeClient, hasCommit: boolean): Promise<Answer> {
  const { dialect } = client
  const events: Record<string, unknown>[] = []
  let wake = (): void => undefined
  client.onEvent((event) => {
    events.push(event as Record<string, unknown>)
    wake()
  })
  const next = async (type: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const found = events.find((event) => event['type'] === type)
      if (found !== undefined) return found
      const failure = events.find((event) => event['type'] === 'error')
      if (failure !== undefined) throw new Error(JSON.stringify(failure))
      await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  await next('session.created')
  client.send({ type: 'session.update', event_id: 'ev_1', session: SETTINGS[dialect] })
  const updated = await next('session.updated')
  const session = updated['session'] as Record<string, unknown>
  if (dialect === 'ga') expect(session).toMatchObject({ type: 'realtime', output_modalities: ['audio'] })
  else expect(new Set(session['modalities'] as string[])).toEqual(new Set(['text', 'audio']))
  for (let at = 0; at < AUDIO.length; at += PIECE_BYTES) {
    const audio = AUDIO.subarray(at, at + PIECE_BYTES).toString('base64')
    client.send({ type: 'input_audio_buffer.append', audio })
  }
  if (hasCommit) client.send({ type: 'input_audio_buffer.commit' })
  client.send({ type: 'response.create', response: WISH[dialect] })
  const { response } = (await next('response.done')) as { response: { usage: unknown; status: string } }
  expect(response.status).toBe('completed')
  return {
    types: [...new Set(events.map(({ type }) => String(type)))],
    transcript: transcriptOf(events, dialect),
    audio: checksum(audioOf(events)),
    usage: response.usage,
  }
}

function transcriptOf(events: readonly Record<string, unknown>[], dialect: RealtimeDialect): string {
  const type = dialect === 'ga' ? 'response.output_audio_transcript.delta' : 'response.audio_transcript.delta'
  return events
    .filter((event) => event['type'] === type)
    .map((event) => String(event['delta']))
    .join('')
}

const linesOf = (gateway: TestGateway, message: string): Record<string, unknown>[] =>
  gateway
    .logText()
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

describe('The four steps of the specification', () => {
  const answers: Answer[] = []

  it.each(COMBINATIONS)('work with %s over a %s upstream', async (_name, upstream, open) => {
    const { gateway, simulator, url } = await startHouse(upstream)
    const client = open(url, 'mine')
    const answer = await converse(client, true)
    const record = simulator.recordOf(simulator.sessions[0])
    expect(record.receivedAudio.checksum).toBe(checksum(AUDIO))
    expect(record.sentAudio.checksum).toBe(answer.audio)
    expect(record.sentAudio.bytes).toBeGreaterThan(PIECE_BYTES)
    expect(answer.transcript).not.toBe('')
    const names = client.dialect === 'ga' ? /^response\.output_(audio|text)/ : /^response\.(audio|text)/
    const others = client.dialect === 'ga' ? /^response\.(audio|text)/ : /^response\.output_(audio|text)/
    expect(answer.types.some((type) => names.test(type))).toBe(true)
    expect(answer.types.filter((type) => others.test(type))).toEqual([])
    answers.push(answer)

    const closed = once(client.socket, 'close')
    client.close()
    expect((await closed)[0]).toBe(1000)
    await eventually(() => linesOf(gateway, 'request').length === 1)
    const [line] = linesOf(gateway, 'request')
    expect(line).toMatchObject({ requestId: 'mine', status: 101, usage: { units: answer.usage, estimated: false } })
    expect(linesOf(gateway, 'usage')).toMatchObject([{ requestId: 'mine', kind: 'response', units: answer.usage }])
    expect(simulator.sessions[0]?.violations).toEqual([])
  })

  it('gave the same transcript and the same audio in every combination', () => {
    expect(answers).toHaveLength(COMBINATIONS.length)
    expect(new Set(answers.map(({ transcript }) => transcript)).size).toBe(1)
    expect(new Set(answers.map(({ audio }) => audio)).size).toBe(1)
  })

  it.each(DIALECTS)('work as they stand there, without a commit, over a %s upstream', async (upstream) => {
    const { url } = await startHouse(upstream)
    const client = plainClient(url, 'mine')
    expect((await converse(client, false)).types).toContain('response.audio.delta')
    expect(client.socket.protocol).toBe('realtime')
    client.close()
    await once(client.socket, 'close')
  })
})
