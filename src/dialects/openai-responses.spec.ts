import { afterEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ManualSource, piecesOf, RecordingSink } from '../../test/support/byte-streams.js'
import { attemptOf, newCall, targetOf } from '../../test/support/raw-upstream.js'
import { type ByteSource, type ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import { HeaderAllowList } from '../upstream/upstream-response.js'
import type { AnswerToKeep } from './kept-answers.js'
import { relayResponse, type ResponsesFields } from './openai-responses.js'

const REQUEST = { model: 'gpt-5-mini', input: '12345678' }
const USAGE = { input_tokens: 7, output_tokens: 5, total_tokens: 12 }
const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: '12345' }] }
const RESPONSE = { id: 'resp_1', object: 'response', status: 'completed', output: [MESSAGE], usage: USAGE }
const IDS = { responseId: 'resp_1', itemIds: ['msg_1'] }

const event = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
const CREATED = event('response.created', { response: { ...RESPONSE, status: 'in_progress', output: [], usage: null } })
const DELTA = event('response.output_text.delta', { delta: 'Hello', output_index: 0, content_index: 0 })
const ended = (name: string, more: object = {}): string =>
  event(`response.${name}`, { response: { ...RESPONSE, ...more } })
const COMPLETED = ended('completed')
const MEBIBYTE = 1024 * 1024

/** A store that keeps when the test says so, and what it was asked to keep. */
class SlowStore {
  readonly asked: AnswerToKeep[] = []
  private resolve: () => void = () => undefined

  readonly keep = (answer: AnswerToKeep): Promise<void> => {
    this.asked.push(answer)
    return new Promise((resolve) => (this.resolve = resolve))
  }

  /** Resolves when all that waited for it has happened. */
  async kept(): Promise<void> {
    this.resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

interface Relayed {
  readonly source: ManualSource
  readonly store: SlowStore
  readonly answer: Promise<ProviderResponse>
}

function relay(type: string, request: Partial<ResponsesFields>, isKept = true): Relayed {
  const body = JsonBody.parse(Buffer.from(JSON.stringify({ ...REQUEST, ...request }))).as<ResponsesFields>({
    ...REQUEST,
    ...request,
  })
  const source = new ManualSource()
  const store = new SlowStore()
  const response = { status: 200, headers: { 'content-type': type }, body: source }
  const call = { body, keep: isKept ? store.keep : undefined }
  const context = {
    ...attemptOf(newCall()),
    target: targetOf(1),
    credentials: 'upstream-key',
    callersKey: false,
    upstreamModel: REQUEST.model,
    deadlineAtMs: Infinity,
  }
  return { source, store, answer: relayResponse(response, new HeaderAllowList(), call, context) }
}

/** Streams send comments until they are over. */
const streams: ByteSource[] = []
afterEach(() => {
  for (const stream of streams.splice(0)) stream.cancel()
})

/** A stream whose first event has reached its caller. */
async function begun(isKept = true, more: Partial<ResponsesFields> = {}) {
  const { source, store, answer } = relay('text/event-stream', { stream: true, ...more }, isKept)
  source.data(CREATED)
  const { body, usage } = await answer
  const sink = new RecordingSink()
  const stream = body as ByteSource
  stream.start(sink)
  streams.push(stream)
  return { source, store, sink, stream, usage }
}

/** A whole answer, of which everything has arrived. */
async function whole(value: object, more: Partial<ResponsesFields> = {}) {
  const { source, answer } = relay('application/json', more, false)
  source.data(JSON.stringify(value))
  source.end()
  return (await answer).usage
}

describe('The end of a stream', () => {
  it('is held back until its ids are kept, and what stands before it is not', async () => {
    const { source, store, sink } = await begun()
    source.data(DELTA, COMPLETED)
    source.end()
    expect(sink.text).toBe(CREATED + DELTA)
    expect(store.asked).toEqual([IDS])
    await store.kept()
    expect([sink.text, sink.ending]).toEqual([CREATED + DELTA + COMPLETED, 'end'])
  })

  it.each(['completed', 'incomplete', 'failed'])('may be response.%s', async (name) => {
    const { source, store } = await begun()
    source.data(ended(name))
    expect(store.asked).toEqual([IDS])
  })

  it.each([
    ['without a blank behind the colon', COMPLETED.replace('event: ', 'event:')],
    ['with CRLF', COMPLETED.replaceAll('\n', '\r\n')],
    ['behind another event in the same piece', DELTA + COMPLETED],
    ['behind a comment', `: here\n\n${COMPLETED}`],
  ])('is found %s', async (_how, text) => {
    const { source, store, sink, usage } = await begun()
    source.data(text)
    expect([store.asked, sink.text]).toEqual([[IDS], CREATED])
    expect(usage?.reportedUsage?.units).toEqual(USAGE)
  })

  it('is found however it was cut into pieces, and nothing is lost or comes in another order', async () => {
    const bytes = Buffer.from(DELTA + COMPLETED)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
        const { source, store, sink } = await begun()
        source.data(...piecesOf(bytes, cuts))
        source.end()
        expect([store.asked, sink.ending]).toEqual([[IDS], undefined])
        await store.kept()
        expect([sink.text, sink.ending]).toEqual([CREATED + DELTA + COMPLETED, 'end'])
      }),
    )
  })

  it('is not taken for one where a model writes of it', async () => {
    const { source, store, sink } = await begun()
    const text = event('response.output_text.delta', {
      delta: '\nevent: response.completed\ndata: {"response":{"id":1}}',
    })
    source.data(text, 'event: response.output_text.delta\ndata: {broken\n\n')
    expect(store.asked).toEqual([])
    expect(sink.text).toContain(text)
  })

  it('lets its source rest until it is kept, and no longer', async () => {
    const { source, store, stream } = await begun()
    source.data(COMPLETED)
    expect(source.asked).toEqual(['pause'])
    stream.pause()
    stream.resume()
    expect(source.asked).toEqual(['pause', 'pause'])
    await store.kept()
    expect(source.asked).toEqual(['pause', 'pause', 'resume'])
  })

  it('leaves its source at rest for a caller who reads slowly', async () => {
    const { source, store, stream } = await begun()
    stream.pause()
    source.data(COMPLETED)
    await store.kept()
    expect(source.asked).not.toContain('resume')
    stream.resume()
    expect(source.asked.at(-1)).toBe('resume')
  })

  it('is given up at once for a caller who leaves', async () => {
    const { source, store, sink, stream } = await begun()
    source.data(COMPLETED)
    stream.cancel()
    expect(source.asked.at(-1)).toBe('cancel')
    source.fail(new GatewayError('caller_left', 'gone'))
    await store.kept()
    expect(sink.text).toBe(CREATED)
  })

  it('comes at once where nothing is kept', async () => {
    const { source, sink } = await begun(false)
    source.data(COMPLETED)
    source.end()
    expect([sink.text, sink.ending]).toEqual([CREATED + COMPLETED, 'end'])
  })

  it('that has no ids is passed on', async () => {
    const { source, store, sink } = await begun()
    const text = event('response.completed', { response: { usage: USAGE } })
    source.data(text)
    source.end()
    expect([store.asked, sink.text, sink.ending]).toEqual([[], CREATED + text, 'end'])
  })

  it('of several megabytes is passed on whole', async () => {
    const { source, store, sink } = await begun()
    const text = ended('completed', { output: [{ ...MESSAGE, result: 'A'.repeat(8 * MEBIBYTE) }] })
    source.data(...piecesOf(Buffer.from(text), [1, MEBIBYTE, 5 * MEBIBYTE]))
    source.end()
    expect(store.asked).toEqual([IDS])
    await store.kept()
    expect(sink.text === CREATED + text).toBe(true)
  })

  it('that has no end is a failure, once it is larger than any', async () => {
    const { source, store, sink } = await begun()
    source.data(`event: response.completed\ndata: {"response":{"x":"`)
    for (let count = 0; count < 17; count++) source.data(Buffer.alloc(MEBIBYTE, 'A'))
    expect([sink.failure, sink.text, store.asked]).toEqual(['upstream_failed', CREATED, []])
    expect(source.asked).toContain('cancel')
  })
})

describe('A whole answer', () => {
  it('comes when its ids are kept', async () => {
    const { source, store, answer } = relay('application/json', {})
    let hasCome = false
    void answer.then(() => (hasCome = true))
    source.data(JSON.stringify(RESPONSE))
    source.end()
    await new Promise((resolve) => setImmediate(resolve))
    expect([store.asked, hasCome]).toEqual([[IDS], false])
    await store.kept()
    expect(hasCome).toBe(true)
  })

  it('of some megabytes, as pictures are, has its items known', async () => {
    const { source, store, answer } = relay('application/json', {})
    const text = JSON.stringify({ ...RESPONSE, output: [{ ...MESSAGE, result: 'A'.repeat(5 * MEBIBYTE) }] })
    source.data(text)
    source.end()
    await new Promise((resolve) => setImmediate(resolve))
    expect(store.asked).toEqual([IDS])
    await store.kept()
    expect((await answer).usage?.reportedUsage?.units).toEqual(USAGE)
  })

  it.each([
    [
      'has its own id known, of whatever form',
      '{ "id" : "urn:resp-1==", "x":"',
      [{ responseId: 'urn:resp-1==', itemIds: [] }],
    ],
    ['has its own id known', '{ "id" : "resp_1", "metadata":{"id":"resp_2"}, "x":"', [{ ...IDS, itemIds: [] }]],
    ['is not taken for another by what its caller has written', '{"metadata":{"id":"resp_2"},"id":"resp_1","x":"', []],
  ])('larger than what is held %s', async (_what, beginning, asked) => {
    const { source, store, answer } = relay('application/json', {})
    source.data(beginning + 'A'.repeat(9 * MEBIBYTE))
    const { body, usage } = await answer
    const sink = new RecordingSink()
    const stream = body as ByteSource
    stream.start(sink)
    source.data(`","usage":${JSON.stringify(USAGE)}}`)
    source.end()
    expect(store.asked).toEqual(asked)
    await store.kept()
    expect(sink.ending).toBe('end')
    expect(usage?.reportedUsage?.units).toEqual(USAGE)
  })
})

describe('What a response has used', () => {
  const tokens = (input: number, output: number): object => ({
    units: { input_tokens: input, output_tokens: output, total_tokens: input + output },
    estimated: true,
  })

  it('is what its upstream says', async () => {
    const usage = await whole(RESPONSE)
    expect(usage?.reportedUsage).toEqual({ units: USAGE, estimated: false })
    expect(usage?.countedUnits?.()).toBeUndefined()
  })

  it.each(['a whole answer', 'a stream'])('is nothing for %s that failed and says nothing of it', async (kind) => {
    const failed = { status: 'failed', usage: null, output: [] }
    if (kind === 'a whole answer') {
      expect((await whole({ ...RESPONSE, ...failed }))?.reportedUsage).toEqual(tokens(0, 0))
      return
    }
    const { source, usage } = await begun()
    source.data(DELTA, ended('failed', failed))
    expect(usage?.reportedUsage).toEqual(tokens(0, 0))
  })

  const CALL = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '12345678' }
  const THOUGHT = {
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: '1234' }],
    encrypted_content: 'x'.repeat(99),
  }

  it.each([
    ['texts', [MESSAGE], 2],
    ['refusals', [{ ...MESSAGE, content: [{ type: 'refusal', refusal: '1234' }] }], 1],
    ['calls of tools', [CALL, { type: 'custom_tool_call', input: '1234' }], 3],
    ['thoughts as far as they are shown', [THOUGHT], 1],
    ['nothing of a list of another kind', [3, null, 'x'.repeat(8)], 2],
    ['nothing without a list', 7, 0],
  ])('is estimated of an answer from its %s', async (_what, output, count) => {
    expect((await whole({ ...RESPONSE, output, usage: null }))?.estimate?.()).toEqual(tokens(2 + 4 + 3, count))
  })

  it.each([
    ['a text', '12345678', 2 + 4],
    [
      'items',
      [{ role: 'user', content: '1234' }, { ...CALL }, { type: 'function_call_output', output: '1234' }],
      4 + 12,
    ],
    ['parts', [{ role: 'user', content: [{ type: 'input_text', text: '你好' }] }], 2 + 4],
    [
      'pictures, as their bytes say nothing',
      [{ role: 'user', content: [{ type: 'input_image', image_url: `data:image/png;base64,${'A'.repeat(9_000)}` }] }],
      1000 + 4,
    ],
    ['nothing', undefined, 4],
  ])('is estimated of a request from its input: %s', async (_what, input, count) => {
    const usage = await whole({ ...RESPONSE, output: [], usage: null }, { input })
    expect(usage?.estimate?.()).toEqual(tokens(count + 3, 0))
  })

  it('is estimated of a request with its instructions and tools', async () => {
    const more = { instructions: '12345678', tools: [{ type: 'web_search' }] }
    const usage = await whole({ ...RESPONSE, output: [], usage: null }, more)
    expect(usage?.estimate?.()).toEqual(tokens(2 + 4 + 3 + 2 + 6, 0))
  })

  it('is counted of a stream by its pieces', async () => {
    const { source, usage } = await begun()
    source.data(DELTA, event('response.function_call_arguments.delta', { delta: '{' }), DELTA)
    expect(usage?.estimate?.()).toEqual(tokens(2 + 4 + 3, 3))
    source.data(COMPLETED)
    expect(usage?.countedUnits?.()).toEqual({ output_tokens: 3 })
  })
})
