import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { attemptOf, newCall, targetOf } from '../../test/support/raw-upstream.js'
import type { ByteSource } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import { HeaderAllowList } from '../upstream/upstream-response.js'
import type { AnswerToKeep, ResponseIds } from './kept-answers.js'
import { relayResponse, relayResumedEvents, type ResponsesFields } from './openai-responses.js'
import { endOf, type EndedResponse, progressIn, relayKeptResponse } from './response-state.js'

const USAGE = { input_tokens: 7, output_tokens: 5, total_tokens: 12 }
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: '12345678' }],
}
const RUNNING = { id: 'resp_1', object: 'response', background: true, status: 'queued', output: [], usage: null }
const COMPLETED = { ...RUNNING, status: 'completed', output: [MESSAGE], usage: USAGE }
const END: EndedResponse = {
  responseId: 'resp_1',
  itemIds: ['msg_1'],
  outcome: 'ok',
  usage: { units: USAGE, estimated: false },
}
const ALLOWED = new HeaderAllowList()
const MEBIBYTE = 1024 * 1024

const event = (type: string, response: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 0, response })}\n\n`
const CREATED = event('response.created', RUNNING)
const DELTA = 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hello"}\n\n'
const LAST = event('response.completed', COMPLETED)

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** What is called of a response in the background, each answered when the test says so. */
class Steps {
  readonly begun: ResponseIds[] = []
  readonly ended: EndedResponse[] = []
  readonly kept: AnswerToKeep[] = []
  admitted = 0
  private resolve: () => void = () => undefined

  readonly background = {
    admit: () => {
      this.admitted++
      return Promise.resolve()
    },
    begun: (ids: ResponseIds) => this.held(this.begun, ids),
    ended: (end: EndedResponse) => this.held(this.ended, end),
  }
  readonly keep = (answer: AnswerToKeep): Promise<void> => {
    this.kept.push(answer)
    return Promise.resolve()
  }

  async done(): Promise<void> {
    this.resolve()
    await turn()
  }

  private held<Value>(list: Value[], value: Value): Promise<void> {
    list.push(value)
    return new Promise((resolve) => (this.resolve = resolve))
  }
}

const streams: ByteSource[] = []
afterEach(() => {
  for (const stream of streams.splice(0)) stream.cancel()
  jest.useRealTimers()
})

const upstreamOf = (type: string, body: ByteSource): UpstreamResponse => ({
  status: 200,
  headers: { 'content-type': type },
  body,
})

/** A request in the background to an upstream that answers what the test says. */
function relay(type: string, more: object = {}) {
  const source = new ManualSource()
  const steps = new Steps()
  const fields: ResponsesFields = { model: 'gpt-5-mini', input: 'Hello', ...more }
  const body = JsonBody.parse(Buffer.from(JSON.stringify(fields))).as<ResponsesFields>(fields)
  const context = {
    ...attemptOf(newCall()),
    target: targetOf(1),
    credentials: 'upstream-key',
    callersKey: false,
    upstreamModel: 'gpt-5-mini',
    deadlineAtMs: Infinity,
  }
  const call = { body, keep: steps.keep, background: steps.background }
  return { source, steps, answer: relayResponse(upstreamOf(type, source), ALLOWED, call, context) }
}

const whole = (value: object) => {
  const made = relay('application/json')
  made.source.data(JSON.stringify(value))
  made.source.end()
  return made
}

/** Of an answer that was held. */
const textOf = (body: ByteSource | Buffer): string | undefined => (Buffer.isBuffer(body) ? body.toString() : undefined)

function read(body: ByteSource | Buffer): RecordingSink {
  const sink = new RecordingSink()
  const stream = body as ByteSource
  stream.start(sink)
  streams.push(stream)
  return sink
}

describe('An answer in the background', () => {
  it('comes when it is written down, byte for byte and without a figure', async () => {
    const { steps, answer } = whole(RUNNING)
    let isAnswered = false
    void answer.then(() => (isAnswered = true))
    await turn()
    expect([steps.begun, isAnswered]).toEqual([[{ responseId: 'resp_1', itemIds: [] }], false])
    await steps.done()
    const { body, usage } = await answer
    expect([textOf(body), usage?.reportedUsage, usage?.estimate?.()]).toEqual([
      JSON.stringify(RUNNING),
      undefined,
      undefined,
    ])
    expect(steps.kept).toEqual([])
  })

  it('that repeats a request of many megabytes is found to be one', async () => {
    const { steps, answer } = whole({ ...RUNNING, instructions: 'x'.repeat(10 * MEBIBYTE) })
    await turn()
    await steps.done()
    await answer
    expect(steps.begun).toHaveLength(1)
  })

  it('is none where the upstream has answered at once: what it used is known', async () => {
    const { steps, answer } = whole({ ...COMPLETED, background: false })
    expect((await answer).usage?.reportedUsage).toEqual({ units: USAGE, estimated: false })
    expect([steps.begun, steps.kept]).toEqual([[], [{ responseId: 'resp_1', itemIds: ['msg_1'] }]])
  })
})

describe('A stream in the background', () => {
  it('begins when it is written down, and its end waits to be recorded', async () => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    let isAnswered = false
    void answer.then(() => (isAnswered = true))
    source.data(CREATED)
    await turn()
    expect([steps.begun, isAnswered]).toEqual([[{ responseId: 'resp_1', itemIds: [] }], false])
    await steps.done()
    const { body, usage } = await answer
    const sink = read(body)
    source.data(DELTA, LAST)
    source.end()
    expect([sink.text, steps.ended]).toEqual([CREATED + DELTA, [END]])
    await steps.done()
    expect([sink.text, sink.ending]).toEqual([CREATED + DELTA + LAST, 'end'])
    expect([usage?.reportedUsage, usage?.estimate?.(), usage?.countedUnits?.()]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(steps.kept).toEqual([])
  })

  it('that begins late is not answered before it is written down: a caller who leaves meanwhile would end it unknown', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] })
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    let isAnswered = false
    void answer.then(() => (isAnswered = true))
    source.data(': soon\n\n')
    jest.advanceTimersByTime(60_000)
    await turn()
    expect([isAnswered, steps.begun.length]).toEqual([false, 0])
    source.data(CREATED, DELTA)
    await turn()
    expect([isAnswered, steps.begun.length]).toEqual([false, 1])
    await steps.done()
    const { text } = read((await answer).body)
    expect(text.replaceAll(': keep-alive\n\n', '')).toBe(`: soon\n\n${CREATED}${DELTA}`)
  })

  it('that ends before it has begun is a failure of its upstream', async () => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    source.data(': soon\n\n')
    source.end()
    await expect(answer).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { channelError: true } },
    })
    expect(steps.begun).toEqual([])
  })

  it('that breaks off together with its first event is written down all the same', async () => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    const failed = expect(answer).rejects.toMatchObject({ kind: 'upstream_failed' })
    source.data(CREATED)
    source.end()
    await turn()
    expect(steps.begun).toEqual([{ responseId: 'resp_1', itemIds: [] }])
    await steps.done()
    await failed
  })

  it('that reports an error together with its first event is not sent to another channel: it was begun, and is billed', async () => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    const failed = expect(answer).rejects.toMatchObject({
      kind: 'upstream_failed',
      message: 'Broken.',
      details: { attempt: { phase: 'answered' }, retryable: false },
    })
    source.data(`${CREATED}event: error\ndata: {"type":"error","message":"Broken."}\n\n`)
    await turn()
    expect(steps.begun).toHaveLength(1)
    await steps.done()
    await failed
    await expect(answer).rejects.not.toMatchObject({ details: { attempt: { channelError: true } } })
  })

  it('that begins behind more than what is held is passed on, and its first event waits to be written down', async () => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    const text = 'data: {}\n\n'.repeat(10_000)
    source.data(text)
    const sink = read((await answer).body)
    expect(sink.text).toBe(text)
    source.data(CREATED)
    expect([steps.begun.length, sink.text]).toEqual([1, text])
    await steps.done()
    expect(sink.text).toBe(text + CREATED)
  })

  it('that is cut is no failure of the channel, and never looks complete', async () => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    source.data(CREATED)
    await turn()
    await steps.done()
    const sink = read((await answer).body)
    source.data(DELTA)
    source.end()
    expect(sink.ending).toBeInstanceOf(GatewayError)
    expect(sink.ending).toMatchObject({ kind: 'upstream_failed', details: { retryable: false } })
    expect((sink.ending as GatewayError).details.attempt?.channelError).toBeUndefined()
    expect([sink.text, steps.ended]).toEqual([CREATED + DELTA, []])
  })

  it.each([
    ['is not read on', RUNNING, false],
    ['is read on where it is none, as its figures are next', { ...RUNNING, background: false }, true],
  ])('whose caller leaves between two items %s', async (_what, response, isReadOn) => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    source.data(event('response.created', response))
    await turn()
    await steps.done()
    read((await answer).body)
    source.data(DELTA, event('response.output_item.done', MESSAGE))
    expect(source.readOn()).toBe(isReadOn)
  })

  it('is none where the upstream makes the response while its caller waits', async () => {
    const { source, steps, answer } = relay('text/event-stream', { stream: true })
    const now = { background: false }
    source.data(event('response.created', { ...RUNNING, ...now }))
    const { body, usage } = await answer
    const sink = read(body)
    source.data(DELTA, event('response.completed', { ...COMPLETED, ...now }))
    source.end()
    await turn()
    expect([steps.begun, steps.ended, steps.kept.length, sink.ending]).toEqual([[], [], 1, 'end'])
    expect(usage?.reportedUsage).toEqual({ units: USAGE, estimated: false })
  })
})

describe('Events that a caller goes on with', () => {
  function resumed({ isContinued = true, isEndKnown = false } = {}) {
    const source = new ManualSource()
    const steps = new Steps()
    const ended = isEndKnown ? undefined : steps.background.ended
    const rules = { ended, isContinued }
    const answer = relayResumedEvents(upstreamOf('text/event-stream', source), ALLOWED, rules, 'upstream-key')
    return { source, steps, answer }
  }

  it('come as they are, and their end waits to be recorded', async () => {
    const { source, steps, answer } = resumed()
    source.data(DELTA)
    const { body, usage } = await answer
    const sink = read(body)
    source.data(LAST)
    source.end()
    expect([sink.text, steps.ended, usage]).toEqual([DELTA, [END], undefined])
    await steps.done()
    expect([sink.text, sink.ending]).toEqual([DELTA + LAST, 'end'])
  })

  it('are none behind the last one, which is no failure', async () => {
    const { source, answer } = resumed({ isEndKnown: true })
    source.end()
    const { text, ending } = read((await answer).body)
    expect([text, ending]).toEqual(['', 'end'])
  })

  it.each([
    ['while the end of the response is not known', { isEndKnown: false }],
    ['from the beginning', { isEndKnown: true, isContinued: false }],
  ])('are an error where there are none %s', async (_when, rules) => {
    const { source, answer } = resumed(rules)
    source.end()
    await expect(answer).rejects.toMatchObject({ message: expect.stringContaining('Ask for the response.') })
  })

  it('are an error where their connection breaks off before the first of them', async () => {
    const { source, answer } = resumed()
    const cut = new GatewayError('upstream_failed', 'The connection was closed.')
    source.fail(cut)
    await expect(answer).rejects.toBe(cut)
  })

  it('are an error where the first of them is cut', async () => {
    const { source, answer } = resumed()
    source.data(DELTA.slice(0, 20))
    source.end()
    await expect(answer).rejects.toMatchObject({ kind: 'upstream_failed' })
  })

  it('are an error where they end before the response has', async () => {
    const { source, answer } = resumed()
    source.data(DELTA)
    const { body } = await answer
    const sink = read(body)
    source.end()
    expect(sink.ending).toMatchObject({ message: expect.stringContaining('Ask for the response.') })
  })
})

describe('The state of a response', () => {
  const REPORTED = { units: USAGE, estimated: false }
  const COUNTED = { units: { output_tokens: 2 }, estimated: true }
  const NOTHING = { units: { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, estimated: true }

  it.each([
    ['completed', USAGE, 'ok', REPORTED],
    ['incomplete', USAGE, 'ok', REPORTED],
    ['completed', null, 'ok', COUNTED],
    ['failed', null, 'upstream_failed', NOTHING],
    ['failed', USAGE, 'upstream_failed', REPORTED],
    ['cancelled', null, 'caller_left', COUNTED],
    ['cancelled', USAGE, 'caller_left', REPORTED],
  ])('is %s with usage %j', (status, usage, outcome, used) => {
    expect(endOf({ ...COMPLETED, status, usage })).toEqual({ ...END, outcome, usage: used })
  })

  it.each(['completed', 'cancelled'])('is %s, and shows nothing of what it has used: that is not known', (status) => {
    expect(endOf({ ...COMPLETED, status, output: [], usage: null })).toMatchObject({ usage: undefined })
  })

  it.each(['queued', 'in_progress', 'unheard_of', undefined])('is no end: %s', (status) => {
    expect(endOf({ ...RUNNING, status })).toBeUndefined()
  })

  const progressOf = async (value: object) => {
    const source = new ManualSource()
    const progress = progressIn(upstreamOf('application/json', source), ALLOWED, 'resp_1')
    const text = JSON.stringify(value)
    for (let at = 0; at < text.length; at += MEBIBYTE) source.data(text.slice(at, at + MEBIBYTE))
    // A source that is not held any more is read when its reader has begun.
    await turn()
    source.end()
    return await progress
  }

  it('is read out of the upstream’s answer', async () => {
    expect(await progressOf(RUNNING)).toBe('running')
    expect(await progressOf(COMPLETED)).toEqual(END)
  })

  it('of an answer too large to be held is read at its end', async () => {
    const large = { ...RUNNING, instructions: 'x'.repeat(9 * MEBIBYTE), usage: null }
    expect(await progressOf(large)).toBe('running')
    expect(await progressOf({ ...large, usage: USAGE })).toEqual({ ...END, itemIds: [] })
  })

  it.each([
    ['in the background', COMPLETED, [END]],
    ['that may have been', { ...COMPLETED, background: undefined }, [END]],
    ['that was not', { ...COMPLETED, background: false }, []],
    ['that has not ended', RUNNING, []],
  ])('is recorded before it is shown: one %s', async (_what, value, ends) => {
    const source = new ManualSource()
    const seen: EndedResponse[] = []
    const answer = relayKeptResponse(upstreamOf('application/json', source), ALLOWED, (end) => {
      seen.push(end)
      return Promise.resolve()
    })
    source.data(JSON.stringify(value))
    source.end()
    expect(textOf((await answer).body)).toBe(JSON.stringify(value))
    expect(seen).toEqual(ends)
  })

  it('passes unread where nothing waits for it', async () => {
    const source = new ManualSource()
    const answer = relayKeptResponse(upstreamOf('application/json', source), ALLOWED, undefined)
    const text = JSON.stringify({ ...COMPLETED, instructions: 'x'.repeat(2 * MEBIBYTE) })
    source.data(text.slice(0, MEBIBYTE + 1))
    const sink = read((await answer).body)
    expect(sink.text).toHaveLength(MEBIBYTE + 1)
    source.data(text.slice(MEBIBYTE + 1))
    source.end()
    expect([sink.text === text, sink.ending]).toEqual([true, 'end'])
  })
})
