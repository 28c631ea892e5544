import { describe, expect, it } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { type ByteSource, ProviderResponse } from '../core/byte-stream.js'
import { type AnswerToKeep, keepingTranslated, type MadeResponse } from './kept-answers.js'

const USAGE = { reported: () => undefined, estimated: () => undefined } as never

const CREATED = 'event: response.created\n\n'
const DELTA = 'event: response.output_text.delta\n\n'
const COMPLETED = 'event: response.completed\n\n'
const MADE: MadeResponse = { responseId: 'resp_1', response: '{"output":[]}', output: ['{"id":"msg_1","n":1.0}'] }

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

/** A stream whose translation makes the response with its last event. */
async function streamed() {
  const source = new ManualSource()
  const store = slowStore()
  const sink = new RecordingSink()
  let made: MadeResponse | undefined
  const translated = new ProviderResponse(200, { a: 'b' }, source, USAGE, 'frame')
  const answer = await keepingTranslated(translated, () => made, store.keep)
  const body = answer.body as ByteSource
  body.start(sink)
  const complete = (): void => {
    made = MADE
    source.data(COMPLETED)
  }
  return { source, complete, store, sink, answer }
}

describe('A translated stream', () => {
  it('is kept when its response is made, before its end is sent', async () => {
    const { source, complete, store, sink, answer } = await streamed()
    source.data(CREATED, DELTA)
    expect([sink.text, store.asked]).toEqual([CREATED + DELTA, []])
    complete()
    source.data(': ping\n\n')
    source.end()
    expect(store.asked).toEqual([MADE])
    expect(sink.text).toBe(CREATED + DELTA)
    await store.kept()
    expect([sink.text, sink.ending]).toEqual([`${CREATED}${DELTA}${COMPLETED}: ping\n\n`, 'end'])
    expect([answer.status, answer.headers, answer.usage, answer.onFailure]).toEqual([200, { a: 'b' }, USAGE, 'frame'])
  })

  it('that makes none, as it failed, is passed on', async () => {
    const { source, store, sink } = await streamed()
    source.data(CREATED, 'event: response.failed\n\n')
    source.end()
    expect([store.asked, sink.ending]).toEqual([[], 'end'])
  })
})

describe('A translated answer', () => {
  const answer = new ProviderResponse(200, {}, Buffer.from('{}'))

  it.each([MADE, undefined])('is kept where there is a response: %j', async (made) => {
    const kept: AnswerToKeep[] = []
    const keep = (each: AnswerToKeep): Promise<void> => Promise.resolve(void kept.push(each))
    expect(await keepingTranslated(answer, () => made, keep)).toBe(answer)
    expect(kept).toEqual(made === undefined ? [] : [made])
  })

  it('passes where nothing is to be kept', async () => {
    expect(await keepingTranslated(answer, () => MADE, undefined)).toBe(answer)
  })
})
