import { afterEach, describe, expect, it } from '@jest/globals'
import { RealtimeProbe, typesOf } from '../../../../test/support/realtime-probe.js'
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
    expect(JSON.parse(refused.body)).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } })
    expect(refused.headers['retry-after']).toBe(status === 429 ? '2' : undefined)
  })

  it('lets a wrong key in and closes with 3000 when told so', async () => {
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

  it('fails the first response of a model nobody has', async () => {
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
