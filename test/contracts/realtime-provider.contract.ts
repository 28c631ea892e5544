import { describe, expect, it } from '@jest/globals'
import type { RealtimeSimulator } from '@multi-model-gateway/sandbox/realtime/realtime.simulator.js'
import type { SocketFault } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { errorOf, startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { closeAfterEach } from '../support/lab-lifetime.js'
import {
  appendAudio,
  RealtimeProbe,
  TRANSCRIPTION,
  TRANSCRIPTION_PATH,
  transcriptionEvent,
  transcriptionUpdate,
  textIn,
  typesOf,
  type RealtimeEvent,
} from '../support/realtime-probe.js'

/** One provider of realtime sessions: how its simulator is started, and how a channel leads there. */
export interface RealtimePlan {
  readonly provider: string
  readonly model: string
  readonly dialect: 'ga' | 'beta'
  /** What the channel holds; a planted canary in no form that a scrubber knows as a key. */
  readonly credentials: string
  readonly start: () => Promise<RealtimeSimulator>
}

interface Lab {
  readonly gateway: TestGateway
  readonly upstream: RealtimeSimulator
  /** The same as `upstream` where there is one channel only. */
  readonly second: RealtimeSimulator
  readonly connect: () => Promise<RealtimeProbe>
  /** Opens a transcription session, without a model in the query. */
  readonly connectTranscription: () => Promise<RealtimeProbe>
  /** The refusal of an upgrade, as its caller reads it. */
  readonly refused: () => Promise<{ readonly status: number; readonly body: string }>
}

const UNKNOWN = '{"type":"input_audio_buffer.clear","no_such_field" : {"n":12345678901234567890, "e":1E3}}'

const refusal = (status: number, body: string): SocketFault => ({
  ...{ kind: 'status', status, body },
  headers: { 'content-type': 'application/json' },
})

const errorText = (message: string): string =>
  JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: 'invalid_value' } })

/** The contract of realtime for every provider: a whole gateway, real sockets on both sides. */
export function realtimeProviderContract(name: string, plan: RealtimePlan): void {
  describe(name, () => {
    const exposed: string[] = []
    const opened = closeAfterEach()

    async function startLab({ channel = {}, withSecond = false, timeouts = {} } = {}): Promise<Lab> {
      const start = async (): Promise<RealtimeSimulator> => opened(await plan.start())
      const upstream = await start()
      const second = withSecond ? await start() : upstream
      const { provider, credentials, dialect, model } = plan
      const common = {
        provider,
        credentials,
        models: [model, 'gpt-4o-transcribe', 'whisper-1'],
        options: { realtimeDialect: dialect },
        ...channel,
      }
      const channels: object[] = [{ id: 'first', baseUrl: upstream.url, ...common }]
      if (withSecond) channels.push({ id: 'second', baseUrl: second.url, priority: 1, ...common })
      const gateway = await startGateway({ channels, sections: { timeouts } })
      opened({
        close: async () => {
          await gateway.close()
          exposed.push(gateway.logText())
        },
      })
      const headers = dialect === 'beta' ? { 'openai-beta': 'realtime=v1' } : undefined
      const options = {
        ...{ url: gateway.url.replace('http', 'ws'), key: TEST_KEY, model },
        ...(headers === undefined ? {} : { headers }),
      }
      return {
        gateway,
        upstream,
        second,
        connect: async () => opened(await RealtimeProbe.open(options)),
        connectTranscription: async () => opened(await RealtimeProbe.open({ ...options, path: TRANSCRIPTION_PATH })),
        refused: async () => {
          const answer = await RealtimeProbe.refused(options)
          exposed.push(JSON.stringify(answer))
          return answer
        },
      }
    }

    /** One answer to a written turn; all events up to its end. */
    async function converse(probe: RealtimeProbe): Promise<readonly RealtimeEvent[]> {
      const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }
      probe.send({ type: 'conversation.item.create', item })
      probe.send({ type: 'response.create', response: textIn(plan.dialect) })
      const events = await probe.until('response.done')
      exposed.push(JSON.stringify(events))
      return events
    }

    it('answers a turn piece by piece to its end, and the upstream finds nothing to complain of', async () => {
      const { connect, upstream } = await startLab()
      const probe = await connect()
      const events = await converse(probe)
      const text = plan.dialect === 'ga' ? 'response.output_text.delta' : 'response.text.delta'
      expect(typesOf(events)).toEqual(expect.arrayContaining(['session.created', text]))
      expect(events.at(-1)).toMatchObject({ response: { status: 'completed', usage: expect.any(Object) } })
      expect(upstream.violations).toEqual([])
    })

    it('opens a transcription session, which writes down what it hears and says what that took', async () => {
      const { connectTranscription, gateway, upstream } = await startLab()
      const probe = await connectTranscription()
      await probe.next(transcriptionEvent(plan.dialect, 'created'))
      probe.send(transcriptionUpdate(plan.dialect, 'gpt-4o-transcribe'))
      await probe.next(transcriptionEvent(plan.dialect, 'updated'))
      appendAudio(probe, Buffer.alloc(48_000, 1))
      probe.send({ type: 'input_audio_buffer.commit' })
      const events = await probe.until(`${TRANSCRIPTION}.completed`)
      exposed.push(JSON.stringify(events))
      expect(events.at(-1)).toMatchObject({ transcript: expect.any(String), usage: { type: 'tokens' } })
      expect(upstream.violations).toEqual([])
      await probe.close()
      await gateway.close()
      expect(gateway.logText()).toContain('"kind":"input_transcription","units":{"total_tokens":')
    })

    it('passes on that a transcription has failed, and bills nothing for it', async () => {
      const { connectTranscription, gateway } = await startLab()
      const probe = await connectTranscription()
      const { type, session } = transcriptionUpdate(plan.dialect, 'whisper-1')
      probe.send(JSON.stringify({ type, session }).replace('"whisper-1"', '"whisper-1","prompt":"#fail"'))
      appendAudio(probe, Buffer.alloc(48_000, 1))
      probe.send({ type: 'input_audio_buffer.commit' })
      expect(await probe.next(`${TRANSCRIPTION}.failed`)).toMatchObject({ error: { code: 'audio_unintelligible' } })
      await probe.close()
      await gateway.close()
      expect(gateway.logText()).not.toContain('"kind":"input_transcription"')
    })

    it('says in its log line which channel served it, and what it took', async () => {
      const { connect, gateway } = await startLab()
      const probe = await connect()
      await converse(probe)
      await probe.close()
      await gateway.close()
      const line = gateway
        .logText()
        .split('\n')
        .find((text) => text.includes('"status":101'))
      expect(JSON.parse(line ?? '{}')).toMatchObject({
        ...{ status: 101, channel: 'first', attempts: 1 },
        usage: { units: { output_tokens: expect.any(Number) } },
      })
    })

    it('sends the upstream the fields that no specification names, as they were written', async () => {
      const { connect, upstream } = await startLab()
      const probe = await connect()
      await probe.until('session.created')
      probe.send(UNKNOWN)
      await converse(probe)
      expect(upstream.lastSession?.messages.map(({ data }) => data.toString())).toContain(UNKNOWN)
    })

    it.each([
      [400, 400, 'invalid_value'],
      [401, 502, 'upstream_failed'],
      [429, 429, 'rate_limit_exceeded'],
      [500, 502, 'upstream_failed'],
    ])('is refused where the upstream refuses with %i: as %i %s', async (given, status, code) => {
      const { refused, upstream } = await startLab()
      upstream.queueFault(refusal(given, errorText('It does not suit.')))
      const answer = await refused()
      expect({ status: answer.status, code: errorOf({ text: answer.body }).code }).toEqual({ status, code })
    })

    it.each([400, 401, 500])('says nothing of a key that a refusal with %i quotes', async (status) => {
      const { refused, upstream } = await startLab()
      upstream.queueFault(refusal(status, errorText(`The key ${plan.credentials} is not for this.`)))
      expect((await refused()).body).not.toContain(plan.credentials)
    })

    it('is refused where the upstream does not answer the handshake in time', async () => {
      const { refused, upstream } = await startLab({ channel: { timeouts: { firstByteMs: 1_000 } } })
      upstream.queueFault({ kind: 'hang' })
      const { status, body } = await refused()
      expect({ status, code: errorOf({ text: body }).code }).toEqual({ status: 504, code: 'upstream_timeout' })
    })

    it.each([401, 429, 500])('is served by a second channel where the first refuses with %i', async (status) => {
      const { connect, upstream, second } = await startLab({ withSecond: true })
      upstream.queueFault(refusal(status, errorText('Not now.')))
      await converse(await connect())
      expect([upstream.sessions.length, second.sessions.length]).toEqual([1, 1])
    })

    it.each([
      ['#drop', ['error']],
      ['#closecode=1011', []],
    ])('ends visibly in the middle of an answer where the upstream does (%s)', async (fault, told) => {
      const { connect, upstream, second } = await startLab({ withSecond: true })
      upstream.queueFault(fault)
      const probe = await connect()
      expect((await probe.closed).code).toBe(1011)
      expect(typesOf(probe.rest()).filter((type) => type === 'error')).toEqual(told)
      // What has begun is never begun again elsewhere.
      expect([upstream.sessions.length, second.sessions.length]).toEqual([1, 0])
    })

    it('survives a message of the upstream that is no event', async () => {
      const { connect, upstream } = await startLab()
      upstream.queueFault('#garbage')
      const probe = await connect()
      expect((await converse(probe)).at(-1)).toMatchObject({ response: { status: 'completed' } })
      expect(probe.oddFrames).toEqual([])
    })

    it('ends a session in which both sides are silent', async () => {
      const { connect } = await startLab({ timeouts: { realtimeIdleMs: 500 } })
      const probe = await connect()
      await probe.closed
      expect(probe.rest()).toContainEqual(
        expect.objectContaining({ error: expect.objectContaining({ code: 'session_idle' }) }),
      )
    })

    it('ends the work of the upstream at once when the client leaves in the middle of an answer', async () => {
      const { connect, upstream } = await startLab()
      upstream.queueFault('#stall')
      const probe = await connect()
      probe.send({ type: 'response.create', response: textIn(plan.dialect) })
      await probe.until('response.created')
      const { lastSession } = upstream
      await probe.close()
      expect(await lastSession?.closed).toMatchObject({ by: 'client' })
    })

    // The last one: it searches what the others have heard, and what their gateways had logged when they were closed.
    it('shows the credentials of the channel in no event, no refusal and no line of the log', () => {
      const told = exposed.join('\n')
      expect(told).toContain('"channel":"first"')
      expect(told).not.toContain(plan.credentials)
    })
  })
}
