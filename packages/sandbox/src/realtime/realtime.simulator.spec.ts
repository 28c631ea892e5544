import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  appendAudio,
  audioOf,
  type RealtimeEvent,
  RealtimeProbe,
  shapeOf,
  spoken,
  TRANSCRIPTION,
  TRANSCRIPTION_PATH,
  transcriptionEvent,
  transcriptionUpdate,
  typesOf,
} from '../../../../test/support/realtime-probe.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { type RealtimeOptions, type RealtimeSimulator, startRealtimeSimulator } from './realtime.simulator.js'

const BETA = { 'openai-beta': 'realtime=v1' }
const headersOf = (dialect: RealtimeDialect): Record<string, string> => (dialect === 'beta' ? BETA : {})

let simulator: RealtimeSimulator
const probes: RealtimeProbe[] = []

async function start(dialect: RealtimeDialect, options: Partial<RealtimeOptions> = {}): Promise<void> {
  simulator = await startRealtimeSimulator({ apiKey: 'test-key', dialect, ...options })
}

async function open(options: Partial<Parameters<typeof RealtimeProbe.open>[0]> = {}): Promise<RealtimeProbe> {
  const probe = await RealtimeProbe.open({ url: simulator.url, ...options })
  probes.push(probe)
  return probe
}

afterEach(async () => {
  await Promise.all(probes.splice(0).map((probe) => probe.close()))
  await simulator.close()
})

describe.each(['ga', 'beta'] as const)('the handshake of the %s dialect', (dialect) => {
  it('greets first with the whole session', async () => {
    await start(dialect)
    const probe = await open({ headers: headersOf(dialect) })
    const created = await probe.next('session.created')
    expect(created['session']).toMatchObject({ object: 'realtime.session', model: 'gpt-realtime', tools: [] })
    expect(Object.keys(created['session'] as object).sort()).toEqual(dialect === 'ga' ? GA_KEYS : BETA_KEYS)
    expect(created['event_id']).toEqual(expect.stringMatching(/^event_/))
    expect(simulator.violations).toEqual([])
  })

  it('chooses the subprotocol realtime when it is offered, and otherwise none', async () => {
    await start(dialect)
    const plain = await open({ headers: headersOf(dialect) })
    const offering = await open({ headers: headersOf(dialect), protocols: ['other', 'realtime'] })
    expect([plain.socket.protocol, offering.socket.protocol]).toEqual(['', 'realtime'])
  })

  it('answers a wrong key with 401 in JSON instead of the upgrade', async () => {
    await start(dialect)
    const refused = await RealtimeProbe.refused({ url: simulator.url, key: 'wrong', headers: headersOf(dialect) })
    expect(refused.status).toBe(401)
    expect(refused.headers['content-type']).toMatch('application/json')
    expect(JSON.parse(refused.body)).toMatchObject({ error: { code: 'invalid_api_key' } })
  })

  it.each([401, 403, 404, 429, 500])('answers the model status-%i with that status in JSON', async (status) => {
    await start(dialect)
    const model = `status-${status}`
    const refused = await RealtimeProbe.refused({ url: simulator.url, model, headers: headersOf(dialect) })
    expect(refused.status).toBe(status)
    expect(JSON.parse(refused.body)).toMatchObject({
      error: { message: expect.any(String), type: expect.any(String) },
    })
    expect(refused.headers['retry-after']).toBe(status === 429 ? '2' : undefined)
  })

  it('accepts a wrong key and closes with 3000 if it is configured so', async () => {
    await start(dialect, { wrongKey: 'event' })
    const probe = await open({ key: 'wrong', headers: headersOf(dialect) })
    expect(await probe.next('error')).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect(await probe.closed).toEqual({ code: 3000, reason: 'invalid_request_error.invalid_api_key' })
  })

  it('records query parameters it does not know', async () => {
    await start(dialect)
    const probe = await open({ query: '&intent=conversation&colour=red', headers: headersOf(dialect) })
    await probe.next('session.created')
    expect(simulator.recordOf(simulator.lastSession).unknownParameters).toEqual([['colour', 'red']])
    expect(simulator.lastSession?.handshake.query.get('intent')).toBe('conversation')
  })

  it('names a model that is not for voice, and closes', async () => {
    await start(dialect)
    const probe = await open({ model: 'gpt-4o', headers: headersOf(dialect) })
    const events = await probe.until('error')
    expect(typesOf(events)).toEqual(['error'])
    expect(events[0]).toMatchObject({ error: { code: 'invalid_model' } })
    expect(await probe.closed).toMatchObject({ code: 4000 })
  })

  it('fails the first response of an unknown model', async () => {
    await start(dialect)
    const probe = await open({ model: 'missing-realtime', headers: headersOf(dialect) })
    await probe.next('session.created')
    probe.send({ type: 'response.create' })
    expect(await probe.next('response.done')).toMatchObject({
      response: {
        status: 'failed',
        status_details: { type: 'failed', error: { code: 'model_not_found' } },
        usage: null,
      },
    })
  })

  it('ends the session at its maximum with an error and 1001', async () => {
    await start(dialect, { sessionMaximumMs: 30 })
    const probe = await open({ headers: headersOf(dialect) })
    const message = `Your session hit the maximum duration of ${dialect === 'ga' ? 60 : 30} minutes.`
    expect(await probe.next('error')).toMatchObject({
      error: { type: 'invalid_request_error', code: 'session_expired', message },
    })
    expect(await probe.closed).toEqual({ code: 1001, reason: message })
  })
})

it('turns a client of the beta away from the GA interface with 4000', async () => {
  await start('ga')
  for (const options of [{ headers: BETA }, { protocols: ['realtime', 'openai-beta.realtime-v1'] }]) {
    const probe = await open(options)
    expect(await probe.next('error')).toMatchObject({ error: { code: 'beta_api_shape_disabled' } })
    expect(await probe.closed).toMatchObject({ code: 4000 })
  }
})

it('demands the beta header, or its subprotocol, for the beta interface', async () => {
  await start('beta')
  const without = await open()
  expect(await without.next('error')).toMatchObject({ error: { code: 'missing_beta_header' } })
  const browser = await open({ protocols: ['realtime', 'openai-beta.realtime-v1'] })
  await browser.next('session.created')
})

it('tells the beta client of its conversation', async () => {
  await start('beta')
  const probe = await open({ headers: BETA })
  const events = await probe.until('conversation.created')
  expect(typesOf(events)).toEqual(['session.created', 'conversation.created'])
})

it('notes a key among the subprotocols', async () => {
  await start('ga')
  await open({ protocols: ['realtime', 'openai-insecure-api-key.test-key'] })
  expect(simulator.violations).toEqual(['a key among the subprotocols'])
})

it('answers other paths and a missing model over HTTP', async () => {
  await start('ga')
  expect(await RealtimeProbe.refused({ url: `${simulator.url}/other` })).toMatchObject({ status: 404 })
  expect(await RealtimeProbe.refused({ url: simulator.url, model: '' })).toMatchObject({ status: 400 })
  expect(await RealtimeProbe.refused({ url: simulator.url, query: '&model=gpt-realtime' })).toMatchObject({
    status: 400,
  })
})

const GA_KEYS = [
  'audio',
  'expires_at',
  'id',
  'include',
  'instructions',
  'max_output_tokens',
  'model',
  'object',
  'output_modalities',
  'prompt',
  'tool_choice',
  'tools',
  'tracing',
  'truncation',
  'type',
]

const BETA_KEYS = [
  'client_secret',
  'expires_at',
  'id',
  'include',
  'input_audio_format',
  'input_audio_noise_reduction',
  'input_audio_transcription',
  'instructions',
  'max_response_output_tokens',
  'modalities',
  'model',
  'object',
  'output_audio_format',
  'speed',
  'temperature',
  'tool_choice',
  'tools',
  'tracing',
  'turn_detection',
  'voice',
]

describe('realtime words', () => {
  let probe: RealtimeProbe

  beforeEach(() => start('ga'))

  async function ask(text: string): Promise<void> {
    probe = await open()
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
    probe.send({ type: 'conversation.item.create', item })
    probe.send({ type: 'response.create' })
  }

  const responseOf = (event: RealtimeEvent): unknown => event['response']

  describe('magic words in a text', () => {
    it('#fail makes the response fail, with the code asked for', async () => {
      await ask('#fail')
      expect(responseOf(await probe.next('response.done'))).toMatchObject({
        status: 'failed',
        status_details: { type: 'failed', error: { type: 'server_error', code: 'server_error' } },
        usage: null,
      })
      await probe.close()
      await ask('#fail=insufficient_quota')
      expect(responseOf(await probe.next('response.done'))).toMatchObject({
        status_details: { error: { code: 'insufficient_quota' } },
      })
    })

    it('#incomplete ends the answer in the middle', async () => {
      await ask('#incomplete')
      expect(responseOf(await probe.next('response.done'))).toMatchObject({
        status: 'incomplete',
        status_details: { type: 'incomplete', reason: 'content_filter' },
        output: [{ status: 'incomplete' }],
      })
    })

    it.each([1000, 1001, 1008, 1011, 1013, 3000, 4999])('#closecode=%i closes with it and a reason', async (code) => {
      await ask(`#closecode=${code}`)
      expect(await probe.closed).toEqual({ code, reason: `simulated close ${code}` })
    })

    it('#closecode=1005 closes without a code, 1006 and #drop without a frame', async () => {
      await ask('#closecode=1005')
      expect(await probe.closed).toMatchObject({ code: 1005 })
      for (const word of ['#closecode=1006', '#drop']) {
        await ask(word)
        await probe.next('response.output_audio.delta')
        expect(await probe.closed).toMatchObject({ code: 1006 })
      }
      expect(simulator.lastSession?.end).toMatchObject({ outcome: 'broken', by: 'simulator' })
    })

    it('#stall falls silent after two deltas, until it is cancelled', async () => {
      await ask('#stall')
      await probe.next('response.output_audio.delta')
      probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
      expect(typesOf(await probe.until('error'))).toEqual(['error'])
      probe.send({ type: 'response.cancel' })
      expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'cancelled' })
    })

    it('#hang gives no answer at all, and the client that leaves is seen', async () => {
      await ask('#hang')
      await probe.next('conversation.item.done')
      probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
      expect(typesOf(await probe.until('error'))).toEqual(['error'])
      const aborted = simulator.nextAbort()
      await probe.close()
      expect((await aborted).end).toMatchObject({ outcome: 'aborted', by: 'client' })
    })

    it('#flood=N sends exactly that much audio', async () => {
      await ask('#flood=1000001')
      const events = await probe.until('response.done')
      expect(audioOf(events)).toHaveLength(1_000_001)
      expect(simulator.recordOf(simulator.lastSession).sentAudio.bytes).toBe(1_000_001)
    })

    it('#flood=N waits for a client that does not read', async () => {
      await ask('#flood=1000000000')
      await probe.next('response.output_audio.delta')
      const stalled = simulator.lastSession?.nextStall()
      probe.socket.pause()
      expect(await stalled).toBe(true)
      expect(simulator.lastSession?.sentBytes).toBeLessThan(64 * 1024 * 1024)
      probe.socket.resume()
    })

    it('#garbage, #binary and #unknown come before an ordinary answer', async () => {
      await ask('#garbage #binary #unknown')
      const events = await probe.until('response.done')
      expect(probe.oddFrames).toHaveLength(2)
      expect(shapeOf(events)).toContain('response.telepathy.delta')
      expect(responseOf(events.at(-1) ?? {})).toMatchObject({ status: 'completed' })
    })

    it('#expire ends the session as its maximum does', async () => {
      await ask('#expire')
      expect(await probe.next('error')).toMatchObject({ error: { code: 'session_expired' } })
      expect(await probe.closed).toMatchObject({ code: 1001 })
    })

    it('#deaf=MS reads nothing for a while', async () => {
      await ask('#deaf=200')
      await probe.next('response.created')
      const before = simulator.lastSession?.receivedBytes ?? 0
      const startedAtMs = performance.now()
      probe.send({ type: 'conversation.item.retrieve', item_id: 'none' })
      await probe.next('error')
      expect(performance.now() - startedAtMs).toBeGreaterThan(100)
      expect(simulator.lastSession?.receivedBytes).toBeGreaterThan(before)
    })

    it('work in the instructions as well', async () => {
      probe = await open()
      probe.send({ type: 'response.create', response: { instructions: '#fail' } })
      expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'failed' })
    })
  })

  describe('magic words queued for a session', () => {
    it.each([
      ['#closecode=1011', 1011],
      ['#drop', 1006],
      ['#expire', 1001],
    ])('%s strikes as soon as it is open', async (word, code) => {
      simulator.queueFault(word)
      probe = await open()
      expect(await probe.closed).toMatchObject({ code })
      expect(simulator.recordOf(simulator.lastSession).sentEventTypes[0]).toBe('session.created')
    })

    it('#hang sends no first event', async () => {
      simulator.queueFault('#hang')
      probe = await open()
      probe.send({ type: 'response.create' })
      const pong = once(probe.socket, 'pong')
      probe.socket.ping()
      await pong
      expect(probe.rest()).toEqual([])
    })

    it('#fail is kept for the response, and the next session is whole', async () => {
      simulator.queueFault('#fail')
      probe = await open()
      probe.send({ type: 'response.create' })
      expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'failed' })
      await probe.close()
      await ask('hello')
      expect(responseOf(await probe.next('response.done'))).toMatchObject({ status: 'completed' })
    })

    it('that mean nothing are a violation', async () => {
      simulator.queueFault('#tipo')
      probe = await open()
      await probe.closed
      expect(simulator.violations[0]).toContain('queued fault knows no #tipo')
    })
  })
})

describe.each(['ga', 'beta'] as const)('a transcription session in the %s dialect', (dialect) => {
  let probe: RealtimeProbe

  const begin = async (path = TRANSCRIPTION_PATH): Promise<RealtimeEvent> => {
    await start(dialect)
    probe = await open({ path, headers: headersOf(dialect) })
    return probe.next(path === TRANSCRIPTION_PATH ? transcriptionEvent(dialect, 'created') : 'error')
  }
  const refusalOf = async (event: RealtimeEvent): Promise<RealtimeEvent> => {
    probe.send({ event_id: 'ev_1', ...event })
    return (await probe.next('error'))['error'] as RealtimeEvent
  }
  const formats = { ga: { format: { type: 'audio/pcmu' } }, beta: { input_audio_format: 'g711_ulaw' } }

  it('begins without a model and without anything that answers', async () => {
    const { session } = await begin()
    expect(session).toMatchObject({ object: 'realtime.transcription_session' })
    for (const name of ['model', 'modalities', 'voice', 'instructions', 'tools'])
      expect(session).not.toHaveProperty(name)
    expect(JSON.stringify(session)).not.toContain('create_response')
  })

  it.each([
    ['whisper-1', { type: 'duration', seconds: 2 }],
    ['gpt-realtime-whisper', { type: 'duration', seconds: 2 }],
    ['gpt-4o-transcribe', expect.objectContaining({ type: 'tokens' })],
  ])('transcribes with %s what is committed, and answers nothing', async (model, usage) => {
    await begin()
    probe.send(transcriptionUpdate(dialect, model, formats[dialect]))
    await probe.next(transcriptionEvent(dialect, 'updated'))
    appendAudio(probe, Buffer.alloc(12_000, 1))
    probe.send({ type: 'input_audio_buffer.commit' })
    const events = await probe.until(`${TRANSCRIPTION}.completed`)
    expect(events.at(-1)).toMatchObject({ transcript: expect.stringContaining('1.50 seconds'), usage })
    expect(typesOf(events).filter((type) => type.startsWith('response.'))).toEqual([])
    expect(simulator.violations).toEqual([])
  })

  it('ends a turn at the end of speech', async () => {
    await begin()
    const [name, session] =
      dialect === 'ga'
        ? ['session.update', { type: 'transcription', audio: { input: { transcription: { model: 'whisper-1' } } } }]
        : ['transcription_session.update', { input_audio_transcription: { model: 'whisper-1' } }]
    probe.send({ type: name, session })
    appendAudio(probe, spoken())
    const types = typesOf(await probe.until(`${TRANSCRIPTION}.completed`))
    expect(types).toEqual(expect.arrayContaining(['input_audio_buffer.speech_started', 'input_audio_buffer.committed']))
    expect(types).not.toContain('response.created')
  })

  it('refuses responses, conversations and turns of models that have none', async () => {
    await begin()
    expect(await refusalOf({ type: 'response.create' })).toMatchObject({
      code: 'invalid_session_type',
      event_id: 'ev_1',
    })
    const conversation = {
      type: 'session.update',
      session: dialect === 'ga' ? { type: 'realtime' } : { voice: 'alloy' },
    }
    expect(await refusalOf(conversation)).toMatchObject({
      message: 'Passing a realtime session update event to a transcription session is not allowed.',
    })
    const turns = { turn_detection: { type: 'server_vad' } }
    expect(await refusalOf(transcriptionUpdate(dialect, 'gpt-realtime-whisper', turns))).toMatchObject({
      message: 'Turn detection is not supported for this transcription model.',
      param: dialect === 'ga' ? 'session.audio.input.turn_detection' : 'session.turn_detection',
    })
  })

  it.each(['voice', 'instructions', 'model', 'tools'])('does not know %s', async (name) => {
    await begin()
    const { type, session } = transcriptionUpdate(dialect, 'whisper-1') as { type: string; session: object }
    expect(await refusalOf({ type, session: { ...session, [name]: 'x' } })).toMatchObject({
      code: 'unknown_parameter',
      param: `session.${name}`,
    })
  })

  it('refuses a model in the query', async () => {
    const { error } = await begin(`${TRANSCRIPTION_PATH}&model=whisper-1`)
    expect(error).toMatchObject({
      code: 'invalid_model',
      message: 'You must not provide a model parameter for transcription sessions.',
    })
    await probe.closed
  })
})
