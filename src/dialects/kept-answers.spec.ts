import { describe, expect, it } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { type ByteSource, ProviderResponse } from '../core/byte-stream.js'
import { type AnswerToKeep, keepingTranslated } from './kept-answers.js'

const USAGE = { reported: () => undefined, estimated: () => undefined } as never

const responseText = (status: string): string =>
  `{"id":"resp_1", "status":"${status}","output":[{"id":"msg_1","n":1.0},{"type":"message"}]}`
const frame = (name: string, response: string): string =>
  `event: response.${name}\ndata: {"type":"response.${name}","sequence_number":1,"response":${response}}\n\n`
const CREATED = frame('created', responseText('in_progress'))
const DELTA =
  'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"event: response.completed"}\n\n'
const TO_KEEP = { responseId: 'resp_1', itemIds: ['msg_1'] }

/** A store that keeps when the test says so. */
function slowStore() {
  const asked: AnswerToKeep[] = []
  let resolve = (): void => undefined
  return {
    asked,
    keep: (answer: AnswerToKeep): Promise<void> => {
      asked.push(answer)
      return new Promise((done) => (resolve = done))
    },
    kept: async (): Promise<void> => {
      resolve()
      await new Promise((done) => setImmediate(done))
    },
  }
}

async function streamed() {
  const source = new ManualSource()
  const store = slowStore()
  const sink = new RecordingSink()
  const answer = await keepingTranslated(new ProviderResponse(200, { a: 'b' }, source, USAGE, 'frame'), store.keep)
  const body = answer.body as ByteSource
  body.start(sink)
  return { source, store, sink, answer }
}

describe('A translated stream', () => {
  it.each(['completed', 'incomplete'])('that ends with response.%s is kept before its end is sent', async (status) => {
    const { source, store, sink, answer } = await streamed()
    source.data(CREATED, DELTA)
    expect([sink.text, store.asked]).toEqual([CREATED + DELTA, []])
    source.data(frame(status, responseText(status)))
    source.end()
    expect(store.asked).toEqual([{ ...TO_KEEP, text: responseText(status) }])
    expect(sink.text).toBe(CREATED + DELTA)
    await store.kept()
    expect([sink.text, sink.ending]).toEqual([CREATED + DELTA + frame(status, responseText(status)), 'end'])
    expect([answer.status, answer.headers, answer.usage, answer.onFailure]).toEqual([200, { a: 'b' }, USAGE, 'frame'])
  })

  it('that failed is not kept', async () => {
    const { source, store, sink } = await streamed()
    source.data(CREATED, frame('failed', responseText('failed')))
    source.end()
    expect([store.asked, sink.ending]).toEqual([[], 'end'])
  })

  it('is kept where its last events come at once, with a comment behind them', async () => {
    const { source, store } = await streamed()
    source.data(`${CREATED}${DELTA}${frame('completed', responseText('completed'))}: ping\n\n`)
    expect(store.asked).toHaveLength(1)
  })
})

describe('A translated answer', () => {
  const whole = (text: string): ProviderResponse => new ProviderResponse(200, {}, Buffer.from(text))

  it.each([
    ['completed', 1],
    ['incomplete', 1],
    ['failed', 0],
    ['in_progress', 0],
  ])('that is %s is kept so often: %i', async (status, count) => {
    const kept: AnswerToKeep[] = []
    const answer = whole(responseText(status))
    const keep = (each: AnswerToKeep): Promise<void> => Promise.resolve(void kept.push(each))
    expect(await keepingTranslated(answer, keep)).toBe(answer)
    expect(kept).toEqual(Array.from({ length: count }, () => ({ ...TO_KEEP, text: responseText(status) })))
  })

  it('passes where nothing is to be kept', async () => {
    const answer = whole('no JSON')
    expect(await keepingTranslated(answer, undefined)).toBe(answer)
  })
})
