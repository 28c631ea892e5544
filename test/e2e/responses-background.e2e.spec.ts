import { rm } from 'node:fs/promises'
import { afterEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import type OpenAI from 'openai'
import { eventually } from '../support/eventually.js'
import { errorOf, openRaw, type RawAnswer, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { askLimits } from '../support/limited-gateway.js'
import { type P1Gateway, startP1Gateway, UPSTREAM_KEY, withP1Gateway } from '../support/provider-gateways.js'
import {
  askResponse,
  LIMITED_KEY,
  OTHER_KEY,
  RESPONSES_KEYS,
  RESPONSES_MODEL,
  RESPONSES_PATH,
  sendResponse,
} from '../support/responses-lab.js'
import { deleteResponse, openai6, OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { dataDirectory, nameDataDirectory, startPostgres } from '../support/stores.js'
import { recordsOf, recordWhere, type ShownRecord } from '../support/usage-lab.js'

const PRICES = [{ models: ['gpt-*'], promptTokens: 1_000_000, completionTokens: 1_000_000, requests: 0 }]
const REQUEST = { model: RESPONSES_MODEL, input: 'Hello', background: true }
/** Of a record of what is not known. */
const UNKNOWN = { units: {}, reported: null, estimated: null, pricing: 'unpriced', cost: null }
/** Longer than any test: only a cancel, or the end of the simulator, ends such a response. */
const NEVER_MS = 600_000

const send = ({ gateway }: P1Gateway, body: object, key = TEST_KEY): Promise<RawAnswer> =>
  sendResponse(gateway, body, key)
const ask = ({ gateway }: P1Gateway, method: string, path: string, key = TEST_KEY): Promise<RawAnswer> =>
  askResponse(gateway, method, path, key)

const tasksOf = async ({ gateway }: P1Gateway): Promise<readonly ShownRecord[]> =>
  (await recordsOf(gateway)).filter(({ kind }) => kind === 'task')

/** The record of a response in the background, and that there is no other one. */
async function billOf(lab: P1Gateway, id: string): Promise<ShownRecord> {
  const name = `task response first ${id}`
  const record = await recordWhere(lab.gateway, (each) => each.id === name)
  expect((await tasksOf(lab)).filter((each) => each.id === name)).toHaveLength(1)
  return record
}

/** What a record says that its upstream has reported so. */
const billed = (usage: OpenAI.Responses.ResponseUsage | undefined | null): object => ({
  kind: 'task',
  route: RESPONSES_PATH,
  model: RESPONSES_MODEL,
  channel: 'first',
  outcome: 'ok',
  pricing: 'priced',
  cost: String((usage?.input_tokens ?? NaN) + (usage?.output_tokens ?? NaN)),
  reported: expect.objectContaining({ output_tokens: usage?.output_tokens }),
})

async function until(
  read: () => Promise<OpenAI.Responses.Response>,
  status: OpenAI.Responses.ResponseStatus,
): Promise<OpenAI.Responses.Response> {
  let seen: OpenAI.Responses.Response | undefined
  await eventually(async () => {
    seen = await read()
    return seen.status === status
  })
  return seen as OpenAI.Responses.Response
}

describe('responses in the background', () => {
  let lab: P1Gateway
  const options = { keys: RESPONSES_KEYS, sections: { database: {}, usage: { batchMs: 1 }, prices: PRICES } }
  shareLab(async () => {
    const directory = await dataDirectory()
    nameDataDirectory(directory)
    lab = await startP1Gateway(options)
    return {
      close: async () => {
        await lab.close()
        await rm(directory, { recursive: true, force: true })
      },
    }
  })
  afterEach(() => {
    expect(lab.simulator.violations).toEqual([])
    lab.simulator.reset()
  })

  describe.each(OPENAI_CLIENTS)('with the client %s', (_name, make) => {
    it('are asked for until they are complete, and are billed once with what their upstream reports', async () => {
      const { responses } = make(lab.gateway)
      const { id, status } = await responses.create({ ...REQUEST, background: true })
      expect(status).toBe('queued')
      const { usage, output } = await until(() => responses.retrieve(id), 'completed')
      expect(await billOf(lab, id)).toMatchObject(billed(usage))
      const items = output.map(({ id: item }) => ({ type: 'item_reference' as const, id: String(item) }))
      const next = await responses.create({
        model: RESPONSES_MODEL,
        input: [...items, { role: 'user', content: 'And now?' }],
      })
      expect(next.status).toBe('completed')
    })

    it('are streamed, and are billed once', async () => {
      const stream = await make(lab.gateway).responses.create({ ...REQUEST, background: true, stream: true })
      let last: OpenAI.Responses.ResponseStreamEvent | undefined
      for await (const event of stream) last = event
      if (last?.type !== 'response.completed') throw new Error(`the last event is ${String(last?.type)}`)
      expect(await billOf(lab, last.response.id)).toMatchObject(billed(last.response.usage))
    })

    it('that are left are billed once, and go on from where they were left', async () => {
      const client = make(lab.gateway)
      const stream = await client.responses.create({ ...REQUEST, background: true, stream: true })
      let id = ''
      for await (const event of stream) {
        if (event.type !== 'response.created') continue
        id = event.response.id
        break
      }
      // The old client has the same, and types that do not know it.
      const rest = await client.responses.retrieve(id, { stream: true, starting_after: 0 })
      const events: OpenAI.Responses.ResponseStreamEvent[] = []
      for await (const event of rest) events.push(event)
      const last = events.at(-1)
      expect([events[0]?.sequence_number, last?.type]).toEqual([1, 'response.completed'])
      const usage = last?.type === 'response.completed' ? last.response.usage : undefined
      expect(await billOf(lab, id)).toMatchObject(billed(usage))
    })
  })

  it('come byte for byte, and their request is recorded without tokens', async () => {
    const answer = await send(lab, REQUEST)
    const id = String(answer.headers['x-request-id'])
    const { simulator } = lab
    expect(simulator.lastRequest?.body.toString()).toBe(JSON.stringify(REQUEST))
    expect(answer.text).toMatch(/^\{\n.*"status": "queued"/s)
    expect(await recordWhere(lab.gateway, ({ request_id }) => request_id === id)).toMatchObject({
      kind: 'request',
      outcome: 'ok',
      units: {},
      reported: null,
      estimated: null,
    })
  })

  it('have no events behind their last one, which is no failure of their upstream', async () => {
    const { id } = JSON.parse((await send(lab, REQUEST)).text) as OpenAI.Responses.Response
    await billOf(lab, id)
    const answer = await ask(lab, 'GET', `${id}?stream=true&starting_after=9999`)
    expect([answer.status, answer.text]).toEqual([200, ''])
  })

  it('are billed although their caller never asks for them', async () => {
    const { id } = JSON.parse((await send(lab, REQUEST)).text) as OpenAI.Responses.Response
    const record = await billOf(lab, id)
    expect(record).toMatchObject({ outcome: 'ok', pricing: 'priced' })
    const { usage } = JSON.parse((await ask(lab, 'GET', id)).text) as OpenAI.Responses.Response
    expect(record).toMatchObject(billed(usage))
  })

  it('whose caller leaves the stream are billed although they are never asked for again', async () => {
    const stream = await openRaw(lab.gateway.url, {
      path: RESPONSES_PATH,
      body: JSON.stringify({ ...REQUEST, stream: true }),
    })
    let text = ''
    for await (const chunk of stream) {
      text += String(chunk)
      if (text.includes('response.created')) break
    }
    stream.destroy()
    const id = /"id":"(resp_\w+)"/.exec(text)?.[1]
    const record = await billOf(lab, String(id))
    const { usage } = JSON.parse((await ask(lab, 'GET', String(id))).text) as OpenAI.Responses.Response
    expect(record).toMatchObject(billed(usage))
    const left = await recordWhere(lab.gateway, ({ outcome }) => outcome === 'caller_left')
    expect(left).toMatchObject({ kind: 'request', units: {}, estimated: null })
  })

  it('that fail say so, and are billed nothing', async () => {
    lab.simulator.queueFault('errorframe')
    const { id } = JSON.parse((await send(lab, REQUEST)).text) as OpenAI.Responses.Response
    expect(await billOf(lab, id)).toMatchObject({ outcome: 'upstream_failed', pricing: 'free', cost: '0' })
    expect(JSON.parse((await ask(lab, 'GET', id)).text)).toMatchObject({ status: 'failed' })
  })

  it('are not there for another key', async () => {
    const { id } = JSON.parse((await send(lab, REQUEST)).text) as OpenAI.Responses.Response
    lab.simulator.reset()
    for (const [method, path] of [
      ['GET', id],
      ['GET', `${id}?stream=true`],
      ['POST', `${id}/cancel`],
      ['DELETE', id],
    ] as const) {
      const answer = await ask(lab, method, path, OTHER_KEY)
      expect([answer.status, errorOf(answer).message]).toEqual([404, `Response with id '${id}' not found.`])
    }
    expect(lab.simulator.requests.filter(({ method }) => method !== 'GET')).toEqual([])
    expect((await ask(lab, 'GET', id)).status).toBe(200)
  })

  it('are not cancelled, and not streamed, where they were made while their caller waited', async () => {
    const { id } = JSON.parse((await send(lab, { ...REQUEST, background: false })).text) as OpenAI.Responses.Response
    const cancelled = await ask(lab, 'POST', `${id}/cancel`)
    expect([cancelled.status, errorOf(cancelled).message]).toEqual([400, 'Cannot cancel a synchronous response.'])
    const streamed = await ask(lab, 'GET', `${id}?stream=true`)
    expect([streamed.status, errorOf(streamed).param]).toEqual([400, 'stream'])
  })

  it('are refused without store, and nothing is sent', async () => {
    const answer = await send(lab, { ...REQUEST, store: false })
    expect([answer.status, errorOf(answer)]).toMatchObject([400, { param: 'background', code: 'invalid_value' }])
    expect(lab.simulator.requests).toEqual([])
  })

  it('are refused with a key of the caller’s own, and nothing is sent', async () => {
    const own = { credentials: 'caller' }
    await withP1Gateway({ channel: own, sections: { database: {} } }, async (callers) => {
      const answer = await send(callers, REQUEST, UPSTREAM_KEY)
      expect([answer.status, errorOf(answer)]).toMatchObject([400, { param: 'background', code: 'unsupported_value' }])
      expect(callers.simulator.requests).toEqual([])
      expect((await send(callers, { ...REQUEST, background: false }, UPSTREAM_KEY)).status).toBe(200)
    })
  })

  it('are not sent while the store is away', async () => {
    await withP1Gateway({ dataDirectory: '/dev/null/no-directory' }, async (without) => {
      for (const more of [{}, { stream: true }]) {
        const answer = await send(without, { ...REQUEST, ...more })
        expect([answer.status, errorOf(answer).code]).toEqual([503, 'overloaded'])
      }
      expect(without.simulator.requests).toEqual([])
    })
  })

  it('count as one request of their key each, and so do their cancels', async () => {
    const keys = [{ id: 'test', key: TEST_KEY, limits: { requestsPerMinute: 2 } }]
    await withP1Gateway({ ...options, keys }, async (limited) => {
      const { id } = JSON.parse((await send(limited, REQUEST)).text) as OpenAI.Responses.Response
      expect((await ask(limited, 'POST', `${id}/cancel`)).status).toBe(200)
      expect((await ask(limited, 'POST', `${id}/cancel`)).status).toBe(429)
    })
  })

  it('take what their create reserved from a limit of tokens, whatever they use', async () => {
    const left = async (): Promise<number> =>
      (await askLimits(lab.gateway.url, LIMITED_KEY)).limits['tokensPerMinute']?.remaining ?? NaN
    const before = await left()
    const request = { ...REQUEST, max_output_tokens: 200 }
    const { id } = JSON.parse((await send(lab, request, LIMITED_KEY)).text) as OpenAI.Responses.Response
    await eventually(async () => (await ask(lab, 'GET', id, LIMITED_KEY)).text.includes('"output_tokens":'))
    expect(before - (await left())).toBe(Math.ceil(JSON.stringify(request).length / 4) + 200)
  })

  describe('that take long', () => {
    let slow: P1Gateway
    shareLab(async () => (slow = await startP1Gateway({ ...options, simulator: { backgroundMs: NEVER_MS } })))

    it.each(OPENAI_CLIENTS)(
      'are cancelled with the client %s, and are not free where their upstream reports nothing',
      async (_name, make) => {
        const client = make(slow.gateway)
        const { id } = await client.responses.create({ ...REQUEST, background: true })
        const answer = await client.responses.cancel(id)
        expect([answer.id, answer.status]).toEqual([id, 'cancelled'])
        expect(await billOf(slow, id)).toMatchObject({ outcome: 'caller_left', ...UNKNOWN })
      },
    )

    it('and are cancelled never look complete to the reader of their stream, and their channel is not at fault', async () => {
      for (let round = 0; round < 6; round++) {
        const stream = await openRaw(slow.gateway.url, {
          path: RESPONSES_PATH,
          body: JSON.stringify({ ...REQUEST, stream: true }),
        })
        let text = ''
        for await (const chunk of stream) {
          const isFirst = text === ''
          text += String(chunk)
          const id = /"id":"(resp_\w+)"/.exec(text)?.[1]
          if (isFirst) expect((await ask(slow, 'POST', `${String(id)}/cancel`)).status).toBe(200)
        }
        expect(text).toContain('The stream ended before the response had.')
        expect(text).not.toMatch(/response\.(?:completed|incomplete|failed)/)
      }
      expect((await send(slow, { ...REQUEST, background: false })).status).toBe(200)
    })

    it('are cancelled by clients that send a body', async () => {
      const { id } = JSON.parse((await send(slow, REQUEST)).text) as OpenAI.Responses.Response
      const path = `${RESPONSES_PATH}/${id}/cancel`
      const { status, text } = await sendResponse(slow.gateway, {}, TEST_KEY, path)
      expect([status, JSON.parse(text)]).toMatchObject([200, { id, status: 'cancelled' }])
    })

    it('and are deleted are billed once, without figures', async () => {
      const client = openai6(slow.gateway)
      const { id } = await client.responses.create({ ...REQUEST, background: true })
      await deleteResponse(client, id)
      expect(await billOf(slow, id)).toMatchObject({ outcome: 'caller_left', ...UNKNOWN })
      expect((await ask(slow, 'GET', id)).status).toBe(404)
    })

    it('end the stream to their upstream when its reader leaves', async () => {
      const { id } = JSON.parse((await send(slow, REQUEST)).text) as OpenAI.Responses.Response
      const stream = await openRaw(slow.gateway.url, { method: 'GET', path: `${RESPONSES_PATH}/${id}?stream=true` })
      stream.resume()
      await eventually(() => slow.simulator.activeRequests === 1)
      stream.destroy()
      await eventually(() => slow.simulator.activeRequests === 0)
    })
  })

  it('are billed once by replicas on one PostgreSQL, which all know them', async () => {
    const postgres = await startPostgres()
    const upstream = await startP1Simulator({ apiKey: UPSTREAM_KEY })
    const sections = { ...options.sections, database: { url: await postgres.emptyDatabase() } }
    const shared = { ...options, sections, channel: { baseUrl: upstream.url } }
    await withP1Gateway(shared, async (one) => {
      await withP1Gateway(shared, async (other) => {
        const ids: string[] = []
        for (let count = 0; count < 20; count++) {
          const { id } = JSON.parse((await send(one, REQUEST)).text) as OpenAI.Responses.Response
          ids.push(id)
        }
        expect((await ask(other, 'GET', String(ids[0]))).status).toBe(200)
        await eventually(async () => (await tasksOf(other)).length === ids.length)
        const names = (await tasksOf(one)).map(({ id }) => id).sort()
        expect(names).toEqual(ids.map((id) => `task response first ${id}`).sort())
      })
    })
    await upstream.close()
    await postgres.close()
  })

  it('that end while no gateway runs are billed by the next one, once', async () => {
    const directory = await dataDirectory()
    const upstream: Simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY })
    const channel = { baseUrl: upstream.url }
    let id = ''
    await withP1Gateway({ ...options, channel, dataDirectory: directory }, async (first) => {
      ;({ id } = JSON.parse((await send(first, REQUEST)).text) as OpenAI.Responses.Response)
    })
    await withP1Gateway({ ...options, channel, dataDirectory: directory }, async (next) => {
      expect(await billOf(next, id)).toMatchObject({ outcome: 'ok', pricing: 'priced' })
    })
    await upstream.close()
    await rm(directory, { recursive: true })
  })
})
