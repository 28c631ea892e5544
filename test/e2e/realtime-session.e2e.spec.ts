import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import {
  type RealtimeSimulator,
  startRealtimeSimulator,
} from '@multi-model-gateway/sandbox/realtime/realtime.simulator.js'
import { type WebSocket, WebSocketServer } from 'ws'
import type { RealtimeDialect } from '../../src/dialects/realtime/dialect.js'
import { Readiness } from '../../src/observability/readiness.js'
import { eventually } from '../support/eventually.js'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { closeAfterEach, shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { startTlsProxy } from '../support/proxies.js'
import {
  appendAudio,
  audioOf,
  type RealtimeEvent,
  RealtimeProbe,
  spoken,
  TRANSCRIPTION,
  TRANSCRIPTION_PATH,
  transcriptionEvent,
  transcriptionUpdate,
  typesOf,
} from '../support/realtime-probe.js'
import {
  connectRealtime,
  REALTIME_UPSTREAM_KEY,
  realtimeChannel,
  startRealtimeLab,
} from '../support/realtime-upstream.js'
import {
  openai4Client,
  openai6Client,
  plainClient,
  type RealtimeClient,
  transcriptionClient,
} from '../support/sdk-clients.js'
import { dataDirectory } from '../support/stores.js'
import { EXAMPLE_PRICES, recordsOf, recordWhere, type ShownRecord } from '../support/usage-lab.js'

describe('realtime session', () => {
  const opened = closeAfterEach()

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
    const simulator = opened(await startRealtimeSimulator({ apiKey: REALTIME_UPSTREAM_KEY, dialect: realtimeDialect }))
    const channels = [realtimeChannel(simulator, { options: { realtimeDialect } })]
    const gateway = opened(await startGateway({ channels }))
    const { url } = opened(await startTlsProxy(gateway.url))
    return { gateway, simulator, url }
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
})

describe('realtime transcription', () => {
  const opened = closeAfterEach()
  const DIALECTS = ['ga', 'beta'] as const
  const COMBINATIONS = DIALECTS.flatMap((client) => DIALECTS.map((upstream) => [client, upstream] as const))

  interface Lab {
    readonly gateway: TestGateway
    readonly simulator: RealtimeSimulator
    readonly open: (options?: { path?: string; key?: string; dialect?: RealtimeDialect }) => Promise<RealtimeProbe>
  }

  async function start(
    realtimeDialect: RealtimeDialect,
    { sections, channel, directory }: { sections?: object; channel?: object; directory?: string } = {},
  ): Promise<Lab> {
    const simulator = opened(await startRealtimeSimulator({ apiKey: REALTIME_UPSTREAM_KEY, dialect: realtimeDialect }))
    const gateway = opened(
      await startGateway({
        channels: [realtimeChannel(simulator, { options: { realtimeDialect }, ...channel })],
        keys: [
          { id: 'test', key: TEST_KEY },
          { id: 'narrow', key: 'narrow-key', models: ['whisper-1'] },
          { id: 'limited', key: 'limited-key', limits: { audioSecondsPerMinute: 3 } },
        ],
        sections: { prices: EXAMPLE_PRICES, ...sections },
        ...(directory === undefined ? {} : { dataDirectory: directory }),
      }),
    )
    const url = gateway.url.replace('http', 'ws')
    return {
      gateway,
      simulator,
      open: async ({ path = TRANSCRIPTION_PATH, key = TEST_KEY, dialect } = {}) =>
        opened(
          await RealtimeProbe.open({
            ...{ url, path, key },
            ...(dialect === 'beta' ? { headers: { 'openai-beta': 'realtime=v1' } } : {}),
          }),
        ),
    }
  }

  /** With a store of usage, whose start takes longer than most tests: for those that read records. */
  async function startStoring(realtimeDialect: RealtimeDialect, channel: object = {}): Promise<Lab> {
    const directory = await dataDirectory()
    opened({ close: () => rm(directory, { recursive: true }) })
    return start(realtimeDialect, { sections: { usage: { store: true } }, channel, directory })
  }

  interface Sender {
    send(event: RealtimeEvent): void
  }

  /** Two seconds of sound. */
  function hum(probe: Sender): void {
    for (let pieces = 0; pieces < 20; pieces++) {
      probe.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(4800, 1).toString('base64') })
    }
  }

  /** The same, committed by the client. */
  function speak(probe: Sender): void {
    hum(probe)
    probe.send({ type: 'input_audio_buffer.commit' })
  }

  const transcriptions = async (gateway: TestGateway): Promise<readonly ShownRecord[]> => {
    await recordWhere(gateway, ({ kind }) => kind === 'request')
    return (await recordsOf(gateway)).filter(({ kind }) => kind === 'input_transcription')
  }

  it.each(COMBINATIONS)(
    'of a client of %s at an upstream of %s writes down what is said',
    async (dialect, upstream) => {
      const { gateway, open, simulator } = await startStoring(upstream)
      const probe = await open({ dialect })
      // A client of GA has not shown its dialect yet, and gets both.
      const created = await probe.next(transcriptionEvent(dialect, 'created'))
      const keys = { ga: { type: 'transcription', audio: expect.anything() }, beta: { input_audio_format: 'pcm16' } }
      expect(created['session']).toMatchObject(keys[dialect])
      probe.send(transcriptionUpdate(dialect, 'gpt-4o-transcribe'))
      const updated = await probe.next(transcriptionEvent(dialect, 'updated'))
      expect(updated['session']).toMatchObject({ object: 'realtime.transcription_session', ...keys[dialect] })
      expect(Object.keys(updated['session'] as object)).not.toContain(dialect === 'ga' ? 'input_audio_format' : 'audio')
      speak(probe)
      const events = await probe.until(`${TRANSCRIPTION}.completed`)
      const item = dialect === 'ga' ? 'conversation.item.added' : 'conversation.item.created'
      expect(typesOf(events)).toEqual(
        expect.arrayContaining(['input_audio_buffer.committed', item, `${TRANSCRIPTION}.delta`]),
      )
      const { usage } = events.at(-1) as { usage: Record<string, number> }
      probe.socket.close()
      await probe.closed
      const reported = Object.fromEntries(Object.entries(usage).filter(([name]) => name !== 'type'))
      expect(await transcriptions(gateway)).toMatchObject([
        { model: 'gpt-4o-transcribe', reported, units: { audio_input_tokens: 20 }, pricing: 'priced', outcome: 'ok' },
      ])
      expect((await recordWhere(gateway, ({ kind }) => kind === 'request')).model).toBe('gpt-4o-transcribe')
      expect(simulator.violations).toEqual([])
    },
  )

  it.each(COMBINATIONS)('is open to the SDK of %s at an upstream of %s', async (dialect, upstream) => {
    const { gateway } = await start(upstream)
    const { url } = opened(await startTlsProxy(gateway.url))
    const client = transcriptionClient(dialect, url, 'mine')
    const heard = new Promise<Record<string, unknown>>((resolve, reject) => {
      client.onEvent((event) => {
        const { type } = event as { type: string }
        if (type === transcriptionEvent(dialect, 'created')) client.send(transcriptionUpdate(dialect, 'whisper-1'))
        if (type === transcriptionEvent(dialect, 'updated')) speak(client)
        if (type === `${TRANSCRIPTION}.completed`) resolve(event as Record<string, unknown>)
        if (type === 'error') reject(new Error(JSON.stringify(event)))
      })
    })
    expect(await heard).toMatchObject({ usage: { type: 'duration', seconds: 2 } })
    client.close()
  })

  it.each(COMBINATIONS)('of a client of %s at an upstream of %s never answers', async (dialect, upstream) => {
    const { open, simulator } = await start(upstream)
    const probe = await open({ dialect })
    probe.send(transcriptionUpdate(dialect, 'whisper-1'))
    await probe.next(transcriptionEvent(dialect, 'updated'))
    const conversation = dialect === 'ga' ? { type: 'realtime' } : { voice: 'alloy' }
    for (const event of [{ type: 'response.create' }, { type: 'session.update', session: conversation }]) {
      probe.send({ ...event, event_id: 'ev_1' })
      expect(await probe.next('error')).toMatchObject({ error: { code: 'invalid_session_type', event_id: 'ev_1' } })
    }
    const received = simulator.recordOf(simulator.lastSession).receivedEvents.map(({ type }) => type)
    expect(received).toEqual([upstream === 'ga' ? 'session.update' : 'transcription_session.update'])
  })

  it('names only models that its key may use', async () => {
    const { open } = await start('ga')
    const probe = await open({ key: 'narrow-key' })
    probe.send(transcriptionUpdate('ga', 'gpt-4o-transcribe'))
    expect(await probe.next('error')).toMatchObject({
      error: { code: 'model_not_allowed', param: 'session.audio.input.transcription.model' },
    })
    probe.send(transcriptionUpdate('ga', 'whisper-1'))
    await probe.next('session.updated')
  })

  it('calls a model as its channel does, and shows, and records, the client’s own name', async () => {
    const channel = { models: ['whisper-1', 'gpt-realtime'], modelMap: { ours: 'whisper-1' } }
    const { gateway, open } = await startStoring('ga', channel)
    const probe = await open({ dialect: 'beta' })
    probe.send(transcriptionUpdate('beta', 'ours'))
    expect(await probe.next('transcription_session.updated')).toMatchObject({
      session: { input_audio_transcription: { model: 'ours' } },
    })
    speak(probe)
    await probe.next(`${TRANSCRIPTION}.completed`)
    await probe.close()
    expect(await transcriptions(gateway)).toMatchObject([{ model: 'ours', units: { audio_seconds: 2 } }])
  })

  it.each([
    ['committed', speak],
    ['never committed', hum],
  ])('takes its audio from the limits of the key as it comes, %s', async (_name, send) => {
    const { open } = await start('ga')
    const probe = await open({ key: 'limited-key' })
    probe.send(transcriptionUpdate('ga', 'whisper-1'))
    await probe.next('session.updated')
    for (let turns = 0; turns < 2; turns++) send(probe)
    expect(await probe.next('error')).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
  })

  it.each([
    ['ga', 'response.output_text.delta'],
    ['beta', 'response.text.delta'],
  ])('clients that show nothing are of the dialect that the settings assume: %s', async (assumed, delta) => {
    const { open } = await start('ga', { sections: { server: { realtimeClientDialect: assumed } } })
    const probe = await open({ path: '/v1/realtime?model=gpt-realtime' })
    const { session } = await probe.next('session.created')
    expect('modalities' in (session as object)).toBe(assumed === 'beta')
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: '#words=2' }] }
    probe.send({ type: 'conversation.item.create', item })
    const audio = delta.replace('text', 'audio_transcript')
    probe.send({ type: 'response.create' })
    expect(typesOf(await probe.until('response.done'))).toContain(audio)
  })
})

describe('realtime limits', () => {
  const opened = closeAfterEach()

  interface Conversation {
    readonly client: WebSocket
    /** The upstream's end. */
    readonly upstream: WebSocket
  }

  async function converse(limits: object = {}): Promise<Conversation> {
    const { gateway, upstream } = opened(await startRealtimeLab({ sections: { limits } }))
    const client = connectRealtime(gateway)
    opened(() => {
      client.terminate()
    })
    await once(client, 'open')
    return { client, upstream: upstream.sockets[0] as WebSocket }
  }

  const nextMessage = async (socket: WebSocket): Promise<string> => {
    const [message] = (await once(socket, 'message')) as [Buffer]
    return message.toString()
  }

  const append = (bytes: number): string =>
    JSON.stringify({
      type: 'input_audio_buffer.append',
      event_id: 'ev_1',
      audio: Buffer.alloc(bytes).toString('base64'),
    })

  const AUDIO_BYTES = 15 * 1024 * 1024
  const FRAME_BYTES = 21 * 1024 * 1024

  describe('an event with as much audio as the specification allows', () => {
    it('reaches the upstream whole', async () => {
      const { client, upstream } = await converse()
      const text = append(AUDIO_BYTES)
      client.send(text)
      expect((await nextMessage(upstream)) === text).toBe(true)
    })

    it('and some more is answered by an error, and the session goes on', async () => {
      const { client, upstream } = await converse()
      client.send(append(AUDIO_BYTES + 1))
      client.send('{"type":"input_audio_buffer.commit"}')
      const [refusal, passed] = await Promise.all([nextMessage(client), nextMessage(upstream)])
      expect(JSON.parse(refusal)).toMatchObject({
        type: 'error',
        error: { code: 'string_above_max_length', param: 'audio', event_id: 'ev_1' },
      })
      expect(passed).toBe('{"type":"input_audio_buffer.commit"}')
    })
  })

  describe('a message that is too long', () => {
    it.each([
      ['by default', {}, FRAME_BYTES],
      ['by the configuration', { realtimeFrameBytes: 1000 }, 1000],
    ])('%s ends the session with 1009', async (_name, limits, bytes) => {
      const { client, upstream } = await converse(limits)
      const ended = Promise.all([once(client, 'close'), once(upstream, 'close')])
      // A frame tells its length first; the rest need not be sent.
      const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      head.writeUInt32BE(bytes + 1, 6)
      ;(Reflect.get(client, '_socket') as { write(data: Buffer): void }).write(head)
      expect((await ended).map(([code]) => code as number)).toEqual([1009, 1000])
    })
  })

  describe('a message in too many fragments', () => {
    it.each([
      ['by default', {}, 1024],
      ['by the configuration', { realtimeFragments: 4 }, 4],
    ])('%s ends the session with 1008', async (_name, limits, fragments) => {
      const { client, upstream } = await converse(limits)
      const ended = Promise.all([once(client, 'close'), once(upstream, 'close')])
      for (let sent = 0; sent <= fragments; sent++) client.send(' ', { fin: false })
      expect((await ended).map(([code]) => code as number)).toEqual([1008, 1000])
    })

    it('and not one more is an event', async () => {
      const { client, upstream } = await converse({ realtimeFragments: 4 })
      const text = '{"type":"input_audio_buffer.commit"}'
      for (const [index, piece] of [text.slice(0, 5), '', text.slice(5, 9), text.slice(9)].entries())
        client.send(piece, { fin: index === 3 })
      expect(await nextMessage(upstream)).toBe(text)
    })
  })
})

describe('realtime example', () => {
  const EXAMPLE = fileURLToPath(new URL('../../examples/realtime.mjs', import.meta.url))
  const HEADER_BYTES = 44

  let lab: P1Gateway
  let folder: string

  shareLab(async () => (lab = await startP1Gateway()))
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'realtime-example-'))
  })
  afterAll(() => {
    rmSync(folder, { recursive: true })
  })

  interface Outcome {
    readonly code: number
    readonly output: string
    readonly complaint: string
  }

  /** Runs the example to its end. */
  const run = (...parameters: string[]): Promise<Outcome> =>
    new Promise((resolve) => {
      execFile(process.execPath, [EXAMPLE, ...parameters], { cwd: folder }, (error, output, complaint) => {
        resolve({ code: error === null ? 0 : Number(error.code), output, complaint })
      })
    })

  const address = (model = 'gpt-realtime'): string =>
    `${lab.gateway.url.replace('http', 'ws')}/v1/realtime?model=${model}`

  /** A WAV file of these samples, with a chunk between format and data as recorders write it. */
  function wavFile(name: string, { rate = 24_000, audio = Buffer.alloc(9_600, 7) } = {}): string {
    const head = Buffer.from('RIFF....WAVEfmt ....................LIST....abcddata....', 'latin1')
    head.writeUInt32LE(16, 16)
    head.writeUInt16LE(1, 20)
    head.writeUInt16LE(1, 22)
    head.writeUInt32LE(rate, 24)
    head.writeUInt16LE(16, 34)
    head.writeUInt32LE(4, 40)
    head.writeUInt32LE(audio.length, 52)
    const file = join(folder, name)
    writeFileSync(file, Buffer.concat([head, audio]))
    return file
  }

  describe('The example of realtime voice', () => {
    it('sends a file, shows the transcript and the usage, and saves what was answered', async () => {
      const audio = Buffer.from(Array.from({ length: 24_000 }, (_, at) => (at * 31) % 251))
      const answer = join(folder, 'answer.wav')
      const outcome = await run(wavFile('question.wav', { audio }), answer, address(), TEST_KEY)
      const checksum = createHash('sha1').update(audio).digest('hex').slice(0, 12)
      expect(outcome).toMatchObject({ code: 0, complaint: '' })
      expect(outcome.output).toContain(`I heard 500 ms of pcm16 audio with checksum ${checksum}.`)
      expect(outcome.output).toMatch(/\nUsage: \{"total_tokens":\d+,/)
      const saved = readFileSync(answer)
      expect(saved.length).toBeGreaterThan(HEADER_BYTES + 4_800)
      expect(saved.toString('latin1', 0, 4)).toBe('RIFF')
      expect([saved.readUInt32LE(4), saved.readUInt32LE(24)]).toEqual([saved.length - 8, 24_000])
      expect(saved.readUInt32LE(40)).toBe(saved.length - HEADER_BYTES)
    })

    it('needs no file: it asks with a tone', async () => {
      const outcome = await run('-', 'tone.wav', address(), TEST_KEY)
      expect(outcome).toMatchObject({ code: 0, complaint: '' })
      expect(outcome.output).toMatch(/^Sent 1\.0 s of a test tone\./)
    })

    it.each<[string, () => Promise<Outcome>, RegExp]>([
      ['a wrong key', () => run('-', 'x.wav', address(), 'wrong'), /refused with HTTP 401: .*invalid_api_key/],
      [
        'an unknown model',
        () => run('-', 'x.wav', address('nope'), TEST_KEY),
        /refused with HTTP 404: .*model_not_found/,
      ],
      ['a file of another rate', () => run(wavFile('slow.wav', { rate: 16_000 })), /has 16000 Hz.*needed are 24000 Hz/],
      ['a file that is no WAV', () => run(EXAMPLE), /is not a WAV file/],
      ['a file that is not there', () => run('nothing.wav'), /There is no file nothing\.wav/],
      [
        'too little audio',
        () => run(wavFile('short.wav', { audio: Buffer.alloc(480) }), 'x.wav', address(), TEST_KEY),
        /Error input_audio_buffer_commit_empty: /,
      ],
    ])('says what is wrong with %s and fails', async (_name, attempt, complaint) => {
      const outcome = await attempt()
      expect(outcome.complaint).toMatch(complaint)
      expect(outcome.code).toBe(1)
    })

    it('says why a session ended too early and fails', async () => {
      const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
      server.on('connection', (socket: WebSocket) => {
        socket.close(1001, 'the gateway is restarting')
      })
      await once(server, 'listening')
      const outcome = await run('-', 'x.wav', `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)
      server.close()
      expect(outcome).toMatchObject({
        code: 1,
        complaint: '\nThe session ended too early: 1001 the gateway is restarting\n',
      })
    })
  })
})

describe('realtime cut', () => {
  const opened = closeAfterEach()

  interface Lab {
    readonly gateway: TestGateway
    /** Ends the gateway and starts another one on the same store. */
    readonly restarted: () => Promise<TestGateway>
  }

  async function start(): Promise<Lab> {
    const p1 = opened(await startP1Simulator({ apiKey: UPSTREAM_KEY }))
    const directory = await dataDirectory()
    opened({ close: () => rm(directory, { recursive: true }) })
    const open = (): Promise<TestGateway> =>
      startGateway({
        channels: [{ id: 'p1-main', provider: 'p1', baseUrl: p1.url, credentials: UPSTREAM_KEY }],
        sections: { usage: { store: true }, prices: EXAMPLE_PRICES },
        dataDirectory: directory,
      })
    let gateway = await open()
    opened({ close: () => gateway.close() })
    return {
      gateway,
      restarted: async () => {
        await gateway.close()
        return (gateway = await open())
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
  async function expectEstimated(
    gateway: TestGateway,
    outcome: string,
    events: readonly RealtimeEvent[],
  ): Promise<void> {
    const records = await answersOf(gateway)
    expect(records).toMatchObject([{ outcome, reported: null, pricing: 'priced' }])
    expect(records[0]?.units['audio_output_tokens']).toBe(heardTokens(events))
  }

  describe('A realtime answer that never comes to its end', () => {
    it('is paid by the client who left in the middle of it, as an estimate', async () => {
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
    })

    it('is paid though the upstream dropped it', async () => {
      const { gateway } = await start()
      const probe = await asked(gateway, '#drop')
      const events = await probe.until('response.audio.delta')
      await probe.closed
      await expectEstimated(gateway, 'upstream_failed', events)
    })

    it('is stored though the gateway went down with it', async () => {
      const { gateway, restarted } = await start()
      const { probe, events } = await begun(gateway)
      const readiness = gateway.application.get(Readiness)
      readiness.markDraining()
      readiness.markGraceOver()
      expect(await probe.closed).toMatchObject({ code: 1001 })
      const next = await restarted()
      await expectEstimated(next, 'refused', events)
    })

    it('is stored with the figures of its upstream where it ends within the grace time of a gateway that goes down', async () => {
      const { gateway, restarted } = await start()
      const probe = await asked(gateway, '#words=40')
      await probe.until('response.audio.delta')
      gateway.application.get(Readiness).markDraining()
      const { response } = (await probe.next('response.done')) as { response: { status: string; usage: unknown } }
      expect(await probe.closed).toMatchObject({ code: 1001 })
      expect(response.status).toBe('completed')
      const next = await restarted()
      expect(await answersOf(next)).toMatchObject([{ outcome: 'ok', reported: response.usage }])
    })

    it('has taken the audio that was said for it', async () => {
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
    })

    it('is paid by the figures of its upstream once it has come to its end, with what was heard beside them', async () => {
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
          units: {
            prompt_tokens: response.usage['input_tokens'],
            completion_tokens: response.usage['output_tokens'],
          },
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
    })
  })
})
