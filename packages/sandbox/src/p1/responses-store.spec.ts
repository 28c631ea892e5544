import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type OpenAI from 'openai'
import { ResponsesSimulatorLab, type WireEvent } from '../../test/chat-simulator-labs.js'

const lab = new ResponsesSimulatorLab({ backgroundMs: 60 })
const slowLab = new ResponsesSimulatorLab({ backgroundMs: 600_000 })

beforeAll(() => Promise.all([lab.start(), slowLab.start()]))
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => Promise.all([lab.close(), slowLab.close()]))

const good = { model: 'gpt-4o-mini', input: 'hello there' }
const idOf = (events: readonly WireEvent[]): string =>
  (events[0] as unknown as { response: { id: string } }).response.id
const errorOf = async (response: Response): Promise<unknown> => ((await response.json()) as { error: unknown }).error

describe('a stored response', () => {
  it('is read as it was answered, streamed or not, and deleted once', async () => {
    const whole = await lab.client.responses.create(good)
    expect(await lab.client.responses.retrieve(whole.id)).toEqual(whole)
    const streamed = await lab.client.responses.stream(good).finalResponse()
    expect(await lab.client.responses.retrieve(streamed.id)).toMatchObject({
      status: 'completed',
      usage: streamed.usage,
    })
    const path = `/${whole.id}`
    const deleted = await lab.send(path, undefined, 'DELETE')
    expect(await deleted.json()).toEqual({ id: whole.id, object: 'response', deleted: true })
    for (const method of ['GET', 'DELETE']) {
      const response = await lab.send(path, undefined, method)
      const message = `Response with id '${whole.id}' not found.`
      expect(response.status).toBe(404)
      expect(await errorOf(response)).toEqual({ message, type: 'invalid_request_error', param: null, code: null })
    }
    await lab.client.responses.delete(streamed.id)
    const refusal = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' }
    await expect(lab.client.responses.create({ ...good, previous_response_id: whole.id })).rejects.toMatchObject(
      refusal,
    )
  })

  it('lists its input in pages, the newest first or in order', async () => {
    const input = ['one', 'two', 'three'].map((content) => ({ role: 'user' as const, content }))
    const { id } = await lab.client.responses.create({ ...good, input })
    const texts = async (query: object): Promise<unknown[]> => {
      const items: OpenAI.Responses.ResponseItem[] = []
      for await (const item of lab.client.responses.inputItems.list(id, query)) items.push(item)
      return items.map((item) =>
        item.type === 'message' && item.content[0]?.type === 'input_text' ? item.content[0].text : item,
      )
    }
    expect(await texts({})).toEqual(['three', 'two', 'one'])
    expect(await texts({ order: 'asc', limit: 2 })).toEqual(['one', 'two', 'three'])
    const page = (await (await lab.send(`/${id}/input_items?limit=2`)).json()) as Record<string, unknown>
    const data = page['data'] as { id: string }[]
    expect(page).toMatchObject({ object: 'list', first_id: data[0]?.id, last_id: data[1]?.id, has_more: true })
    expect(data[0]).toMatchObject({
      id: expect.stringMatching(/^msg_[0-9a-f]{50}$/),
      role: 'user',
      status: 'completed',
    })
  })

  it.each([
    ['', '?stream=true', 400],
    ['', '?starting_after=1', 400],
    ['', '?foo=1', 400],
    ['', '?include[]=reasoning.encrypted_content', 200],
    ['/input_items', '?limit=101', 400],
    ['/input_items', '?order=up', 400],
    ['/input_items', '?after=msg_1', 404],
  ])('answers GET %s%s with %i', async (path, query, status) => {
    const { id } = await lab.client.responses.create(good)
    expect((await lab.send(`/${id}${path}${query}`)).status).toBe(status)
  })

  it('cannot be cancelled when it was not made in the background', async () => {
    const { id } = await lab.client.responses.create(good)
    await expect(lab.client.responses.cancel(id)).rejects.toMatchObject({ status: 400, message: /synchronous/ })
    await expect(lab.client.responses.cancel('resp_1')).rejects.toMatchObject({ status: 404 })
  })
})

describe('a response in the background', () => {
  it('is queued, in progress and completed, and is charged then', async () => {
    const begun = await lab.client.responses.create({ ...good, background: true })
    expect(begun.status).toBe('queued')
    const events = await lab.eventsOf(await lab.send(`/${begun.id}?stream=true`))
    const states = events
      .map(({ type }) => type)
      .filter((type) => /^response\.(queued|in_progress|completed)$/.test(type))
    expect(states).toEqual(['response.queued', 'response.in_progress', 'response.completed'])
    const response = await lab.client.responses.retrieve(begun.id)
    expect(response).toMatchObject({ background: true, output_text: 'You said: hello there' })
    const units = { promptTokens: response.usage?.input_tokens, completionTokens: 4 }
    expect(lab.simulator.served.answers['gpt-4o-mini']?.at(-1)).toEqual(units)
    expect(await lab.client.responses.cancel(response.id)).toMatchObject({ status: 'completed' })
  })

  it('is streamed while it is made, and again from any event', async () => {
    const events = await lab.eventsOf(await lab.send('', { ...good, background: true, stream: true }))
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      'response.created',
      'response.queued',
      'response.in_progress',
    ])
    const id = idOf(events)
    const rest = await lab.eventsOf(await lab.send(`/${id}?stream=true&starting_after=5`))
    expect(rest).toEqual(events.slice(6))
    const stream = lab.client.responses.stream({ response_id: id })
    expect(await stream.finalResponse()).toMatchObject({ status: 'completed' })
  })

  it('shows its thoughts when they are made, not before', async () => {
    const asked = { ...good, model: 'gpt-5', reasoning: { summary: 'auto' }, background: true, stream: true }
    const events = await lab.eventsOf(await lab.send('', asked))
    const [added, done] = events.filter(({ type }) => type.startsWith('response.output_item.'))
    expect(added?.['item']).toMatchObject({ type: 'reasoning', summary: [] })
    expect(done?.['item']).toMatchObject({ type: 'reasoning', summary: [{ type: 'summary_text' }] })
  })

  it('fails when the upstream does', async () => {
    const asked = { ...good, input: '#errorframe', background: true, stream: true }
    const events = await lab.eventsOf(await lab.send('', asked))
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.queued', 'error', 'response.failed'])
    const id = idOf(events)
    expect(await lab.client.responses.retrieve(id)).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
  })

  it('is cancelled before it is over, which ends its stream', async () => {
    const { responses } = slowLab.client
    const types: string[] = []
    for await (const event of await responses.create({ ...good, background: true, stream: true })) {
      types.push(event.type)
      if (event.type !== 'response.created') continue
      const { id } = event.response
      expect(await responses.cancel(id)).toMatchObject({ id, status: 'cancelled', output: [] })
      expect(await responses.retrieve(id)).toMatchObject({ status: 'cancelled' })
    }
    expect(types).toEqual(['response.created', 'response.queued'])
    expect(slowLab.simulator.served.sums).toEqual({})
  })
})
