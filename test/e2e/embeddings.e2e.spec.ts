import { describe, expect, it } from '@jest/globals'
import { newKey } from '../../src/auth/key-table.js'
import { Admission } from '../../src/overload/admission.js'
import { CALLER_FAULTS, CHANNEL_FAULTS, expectRefused, timeAbort, startCall } from '../support/failing-calls.js'
import { errorOf, sendRaw, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway, withP1Gateway } from '../support/provider-gateways.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { recordWhere } from '../support/usage-lab.js'

const PATH = '/v1/embeddings'
const MODEL = 'text-embedding-3-small'
const embeddingsText = (input: unknown, more: object = {}): string => JSON.stringify({ model: MODEL, input, ...more })
const embed = (lab: P1Gateway, input: unknown, more: object = {}) =>
  sendRaw(lab.gateway.url, { path: PATH, body: embeddingsText(input, more) })

const product = (one: readonly number[], other: readonly number[]): number =>
  one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0)

describe('embeddings', () => {
  let lab: P1Gateway
  const prices = [{ models: ['text-embedding-*'], promptTokens: 1_000_000 }]
  shareLab(async () => (lab = await startP1Gateway({ sections: { database: {}, prices } })))

  describe.each(OPENAI_CLIENTS)('with %s', (_name, makeClient) => {
    it('find the text that means the same, in Base64 which the SDK asks for by itself', async () => {
      const input = ['The cat sleeps on the sofa', 'A cat on the sofa', 'Interest rates rose']
      const { data, usage } = await makeClient(lab.gateway).embeddings.create({ model: MODEL, input })
      const [cat = [], sofa = [], rates = []] = data.map(({ embedding }) => embedding)
      expect(cat).toHaveLength(1536)
      expect(product(cat, sofa)).toBeGreaterThan(product(cat, rates) + 0.2)
      expect(usage.prompt_tokens).toBeGreaterThan(0)
      expect(lab.simulator.lastRequest?.body.toString()).toMatch(/"encoding_format": ?"base64"/)
      expect(lab.simulator.violations).toEqual([])
    })

    it('have the length that was asked for, as numbers where those were asked for', async () => {
      const params = { model: MODEL, input: 'Hello', dimensions: 256, encoding_format: 'float' } as const
      const { data } = await makeClient(lab.gateway).embeddings.create(params)
      expect(data[0]?.embedding).toHaveLength(256)
    })
  })

  it.each([
    ['a text', 'Hello', 1],
    ['white space', ' ', 1],
    ['tokens', [1, 2, 3], 1],
    ['texts', ['a', 'b'], 2],
    ['lists of tokens', [[1], [2, 3]], 2],
    ['as many texts as one request may have', Array<string>(2048).fill('x'), 2048],
    // As LangChain sends long documents: more values than any other request may have.
    ['eighty thousand tokens', Array.from({ length: 20 }, () => Array<number>(4000).fill(7)), 20],
  ])('are made of %s', async (_what, input, count) => {
    const { status, text } = await embed(lab, input, { dimensions: 8 })
    expect(status).toBe(200)
    expect((JSON.parse(text) as { data: unknown[] }).data).toHaveLength(count)
  })

  it('pass on the bytes of the caller, with nothing but the model replaced, and those of the answer', async () => {
    const body = `{ "input" : ["caf\\u00e9",\t"x"] , "model":"${MODEL}", "dimensions":8.0, "encoding_format":"float"}`
    const options = { channel: { modelMap: { [MODEL]: 'text-embedding-3-large' } } }
    await withP1Gateway(options, async ({ gateway, simulator }) => {
      expect((await sendRaw(gateway.url, { path: PATH, body })).status).toBe(200)
      expect(simulator.lastRequest?.body.toString()).toBe(body.replace(MODEL, 'text-embedding-3-large'))
      const answer = `{ "data" : [ 1.50 ],\n "usage":{"prompt_tokens": 1.0e0} }\n`
      const headers = { 'content-type': 'application/json' }
      simulator.queueFault({ kind: 'status', status: 200, headers, body: answer })
      expect((await sendRaw(gateway.url, { path: PATH, body })).text).toBe(answer)
    })
  })

  it('come whole where they are megabytes, with the usage that stands at their end', async () => {
    const input = Array.from({ length: 200 }, (_, index) => `text ${index}`)
    const { text, complete, headers } = await embed(lab, input)
    expect(text.length).toBeGreaterThan(3_000_000)
    expect(complete).toBe(true)
    const { usage } = JSON.parse(text) as { usage: { prompt_tokens: number } }
    const id = String(headers['x-request-id'])
    const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
    expect(record).toMatchObject({ route: PATH, model: MODEL, outcome: 'ok', cost: String(usage.prompt_tokens) })
  })

  it.each([
    ['a text, by its bytes', 'x'.repeat(4000), Math.ceil(embeddingsText('x'.repeat(4000)).length / 4)],
    ['token ids, by their number', [12_345, 12_346, 12_347], 3],
    ['lists of token ids', [[1], [12_345, 12_346]], 3],
  ])('are billed by an estimate where the upstream says nothing of their usage: %s', async (_what, input, tokens) => {
    const headers = { 'content-type': 'application/json' }
    lab.simulator.queueFault({ kind: 'status', status: 200, headers, body: '{"object":"list","data":[]}' })
    const answer = await embed(lab, input)
    const id = String(answer.headers['x-request-id'])
    const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
    expect(record).toMatchObject({ outcome: 'ok', estimated: { prompt_tokens: tokens }, cost: String(tokens) })
  })

  it('are billed by figures that stand before megabytes of vectors', async () => {
    const vector = `[${'0.125,'.repeat(200_000)}0]`
    const body = `{"model":"m","object":"list","usage":{"prompt_tokens":7,"total_tokens":7},"data":[{"embedding":${vector}}]}`
    const headers = { 'content-type': 'application/json' }
    lab.simulator.queueFault({ kind: 'status', status: 200, headers, body })
    const answer = await embed(lab, 'Hello')
    expect(answer.text.length).toBe(body.length)
    const id = String(answer.headers['x-request-id'])
    const record = await recordWhere(lab.gateway, ({ request_id }) => request_id === id)
    expect(record).toMatchObject({ reported: { prompt_tokens: 7 }, cost: '7' })
  })

  it('fit into the limit of their key by what they are, not by how long they are written', async () => {
    const key = newKey()
    const limited = { id: 'limited', key, limits: { tokensPerMinute: 1000 } }
    await withP1Gateway({ keys: [{ id: 'test', key: TEST_KEY }, limited] }, async ({ gateway }) => {
      const ask = (input: unknown) =>
        sendRaw(gateway.url, {
          path: PATH,
          body: embeddingsText(input, { dimensions: 8 }),
          headers: { authorization: `Bearer ${key}` },
        })
      expect((await ask(Array<number>(900).fill(12_345))).status).toBe(200)
      const refused = await ask(Array<number>(101).fill(1))
      expect([refused.status, errorOf(refused).code]).toEqual([429, 'rate_limit_exceeded'])
    })
  })

  describe('are refused before the upstream is called', () => {
    const INVALID = 'invalid_type'
    it.each([
      ['no model', '{"input":"x"}', 'missing_required_parameter', 'model'],
      ['no input', `{"model":"${MODEL}"}`, 'missing_required_parameter', 'input'],
      ['null', embeddingsText(null), 'missing_required_parameter', 'input'],
      ['an empty text', embeddingsText(''), 'empty_string', 'input'],
      ['an empty list', embeddingsText([]), 'empty_array', 'input'],
      ['an empty text in a list', embeddingsText(['a', '']), 'empty_string', 'input[1]'],
      ['an empty list of tokens', embeddingsText([[1], []]), 'empty_array', 'input[1]'],
      ['a number', embeddingsText(7), INVALID, 'input'],
      ['an object', embeddingsText({ text: 'x' }), INVALID, 'input'],
      ['objects', embeddingsText([{ text: 'x' }]), INVALID, 'input[0]'],
      ['null in a list', embeddingsText([null]), INVALID, 'input[0]'],
      ['texts and tokens', embeddingsText(['a', 1]), INVALID, 'input[1]'],
      ['tokens and texts', embeddingsText([1, 'a']), INVALID, 'input[1]'],
      ['half a token', embeddingsText([1, 2.5]), INVALID, 'input[1]'],
      ['a token below zero', embeddingsText([[1], [2, -1]]), 'integer_below_min_value', 'input[1][1]'],
      ['2,049 texts', embeddingsText(Array(2049).fill('x')), 'array_above_max_length', 'input'],
      ['2,049 lists', embeddingsText(Array(2049).fill([1])), 'array_above_max_length', 'input'],
      ['an encoding', embeddingsText('x', { encoding_format: 'hex' }), 'invalid_value', 'encoding_format'],
      ['no dimensions', embeddingsText('x', { dimensions: 0 }), 'integer_below_min_value', 'dimensions'],
      ['half dimensions', embeddingsText('x', { dimensions: 1.5 }), INVALID, 'dimensions'],
      ['a user', embeddingsText('x', { user: 1 }), INVALID, 'user'],
    ])('%s', async (_what, body, code, param) => {
      await expectRefused(lab, { path: PATH, body }, { status: 400, code, param })
    })

    it('with more values than any upstream takes', async () => {
      const body = embeddingsText(Array(600_000).fill(1))
      await expectRefused(lab, { path: PATH, body }, { status: 400, code: 'json_too_many_values' })
    })

    it('where the model is one of another kind, which the message names', async () => {
      const body = embeddingsText('x', { model: 'gpt-4o-mini' })
      const answer = await sendRaw(lab.gateway.url, { path: PATH, body })
      expect(answer.status).toBe(404)
      expect(errorOf(answer)).toMatchObject({ code: 'model_not_found', param: 'model' })
      expect(errorOf(answer).message).toContain('gpt-4o-mini')
      expect(lab.simulator.requests).toEqual([])
    })
  })

  it.each(CALLER_FAULTS)("give a caller's fault in the upstream's words: $fault", async (row) => {
    const answer = await embed(lab, `#${row.fault}`)
    expect(answer.status).toBe(row.chatStatus)
    expect(errorOf(answer).message).toContain(row.words)
  })

  it.each(CHANNEL_FAULTS.filter(({ fault }) => fault !== 'hang'))(
    'give no word of a failing channel: $fault',
    async (row) => {
      const answer = await embed(lab, `#${row.fault}`)
      expect([answer.status, errorOf(answer).code]).toEqual([row.chatStatus, row.code])
    },
  )

  it('hold no more memory than their bytes while the upstream works', async () => {
    const body = embeddingsText(Array<number>(100_000).fill(7))
    lab.simulator.queueFault('hang')
    const arrived = lab.simulator.nextRequest()
    const leave = startCall(lab.gateway, { path: PATH, body })
    await arrived
    const { memory } = lab.gateway.application.get(Admission)
    expect(memory.bytes).toBeGreaterThanOrEqual(body.length)
    expect(memory.bytes).toBeLessThan(2 * body.length)
    const aborted = lab.simulator.nextAbort()
    leave()
    await aborted
  })

  it('end their upstream call where the caller leaves', async () => {
    const body = embeddingsText('#hang')
    expect(await timeAbort(lab.simulator, () => startCall(lab.gateway, { path: PATH, body }))).toBeLessThan(5000)
  })

  it('are listed with their class and what they can do', async () => {
    const headers = { authorization: `Bearer ${TEST_KEY}` }
    const { text } = await sendRaw(lab.gateway.url, { method: 'GET', path: `/v1/models/${MODEL}`, headers })
    expect(JSON.parse(text)).toMatchObject({
      id: MODEL,
      x_gateway: { class: 'embedding', capabilities: ['embeddings'] },
    })
  })
})
