import { describe, expect, it } from '@jest/globals'
import { type ByteSink, type ByteSource, ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody, type ModelFields } from '../core/json-body.js'
import { jsonTextOf } from '../core/json-text.js'
import { RelayedUsage } from '../core/usage.js'
import { SseRelay } from '../upstream/sse-relay.js'
import { factsOf } from './model-facts.js'
import { OwnerSeals } from './translations/seals.js'
import {
  type EventTranslation,
  sendTranslated,
  type Translation,
  type TranslationTarget,
  type Translator,
} from './translator.js'
import { Verdicts } from './verdicts.js'

/** From a client that says `{say}` to an upstream that shouts `{SHOUT}`. */
const shouting: Translator<ModelFields, ModelFields> = (body, { upstreamModel }) => {
  const { model } = body.fields
  const text = JSON.stringify({ MODEL: upstreamModel, SHOUT: body.textOf('say') })
  return {
    request: JsonBody.written(text, { model: upstreamModel }),
    response: ({ SHOUT }, texts) => {
      if (typeof SHOUT !== 'string') throw new GatewayError('upstream_failed', 'Nothing was shouted.')
      return jsonTextOf({ model, said: SHOUT.toLowerCase(), times: texts.at('TIMES')?.text })
    },
    events: () => ({
      event: ({ SHOUT: word }) => {
        if (word === undefined) throw new TypeError('no word')
        return word === '' ? '' : `data: ${JSON.stringify({ said: word })}\n\n`
      },
      end: () => 'data: [DONE]\n\n',
    }),
    // The path of the client's field for that of the upstream's.
    error: ({ kind, message, details }) =>
      new GatewayError(kind, message, { ...details, param: `${details.param ?? ''}.say` }),
  }
}

const BODY = JsonBody.parse(Buffer.from('{"model":"quiet","say":1.0}')).as<ModelFields>({ model: 'quiet' })

const TARGET: TranslationTarget = {
  upstreamModel: 'LOUD',
  facts: factsOf(undefined),
  requestId: 'req_1',
  seals: new OwnerSeals(Buffer.from('secret'), 'owner'),
}

const shout = (): Translation<ModelFields> =>
  shouting(BODY, TARGET, new Verdicts({ client: 'chat', upstream: 'messages' }, false))

const sent = (
  send: (request: JsonBody<ModelFields>) => Promise<ProviderResponse>,
  translation = shout(),
): Promise<ProviderResponse> => sendTranslated(translation, undefined, send)

/** A body that is delivered as the test says, and remembers what was asked of it. */
class PlayedSource implements ByteSource {
  readonly asked: string[] = []
  sink!: ByteSink

  constructor(private readonly play: (sink: ByteSink) => void) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.play(sink)
  }

  pause(): void {
    this.asked.push('pause')
  }

  resume(): void {
    this.asked.push('resume')
  }

  cancel(): void {
    this.asked.push('cancel')
  }
}

class Received implements ByteSink {
  text = ''
  outcome: 'ended' | GatewayError | undefined

  data(chunk: Buffer): void {
    this.text += chunk.toString()
  }

  end(): void {
    this.outcome = 'ended'
  }

  fail(error: GatewayError): void {
    this.outcome = error
  }
}

const EVENTS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'retry-after': '1',
  'anthropic-ratelimit-tokens-remaining': '1',
}
const usage = new RelayedUsage()

const whole = (text: string): Promise<ProviderResponse> =>
  sent(() =>
    Promise.resolve(new ProviderResponse(200, { 'content-type': 'application/json' }, Buffer.from(text), usage)),
  )

async function stream(source: ByteSource): Promise<{ response: ProviderResponse; received: Received }> {
  const response = await sent(() => Promise.resolve(new ProviderResponse(200, EVENTS, source, usage, 'frame')))
  const received = new Received()
  if (Buffer.isBuffer(response.body)) throw new Error('no stream')
  response.body.start(received)
  return { response, received }
}

const frame = (word: string): string => `event: word\r\ndata: ${JSON.stringify({ SHOUT: word })}\r\n\r\n`
const chunk = (sink: ByteSink, text: string): void => {
  sink.data(Buffer.from(text))
}

describe('A translated request', () => {
  it('reaches the upstream in its dialect, under its name for the model, with numbers spelled as they were', async () => {
    let text = ''
    const refused = sent((request) => {
      text = request.bytes.toString()
      return Promise.reject(new GatewayError('invalid_request', 'No.'))
    })
    await expect(refused).rejects.toThrow('No.')
    expect(text).toBe('{"MODEL":"LOUD","SHOUT":"1.0"}')
  })

  it("that fails upstream is the client's error: its field is translated, the upstream's own body is left out", async () => {
    const failure = new GatewayError('invalid_request', 'Too loud.', {
      param: 'SHOUT',
      relayed: { status: 400, body: '{"ERROR":1}' },
      attempt: { phase: 'answered' },
    })
    const error = await sent(() => Promise.reject(failure)).catch((e: unknown) => e)
    expect(error).toMatchObject({
      kind: 'invalid_request',
      details: { param: 'SHOUT.say', attempt: { phase: 'answered' } },
    })
    expect(error).not.toHaveProperty('details.relayed')
  })
})

describe('A whole answer', () => {
  it("is in the client's dialect, with the usage of the upstream", async () => {
    const answer = await whole('{"SHOUT":"HELLO","TIMES":1e400}')
    expect(answer.body).toEqual(Buffer.from('{"model":"quiet","said":"hello","times":1e400}'))
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.usage).toBe(usage)
  })

  it('that comes in pieces is collected', async () => {
    const source = new PlayedSource((sink) => {
      chunk(sink, '{"SHOUT":')
      chunk(sink, '"HI"}')
      sink.end()
    })
    const answer = await sent(() => Promise.resolve(new ProviderResponse(200, {}, source)))
    expect(answer.body).toEqual(Buffer.from('{"model":"quiet","said":"hi"}'))
  })

  it.each([
    ['no JSON', 'HELLO'],
    ['no object', '["HELLO"]'],
    ['cut', '{"SHOUT":"HEL'],
    ['without what the client needs', '{}'],
  ])('is the failure of the upstream when it is %s', async (_name, text) => {
    const error: unknown = await whole(text).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ kind: 'upstream_failed' })
    // It was paid for: no other channel is asked.
    expect(error).not.toHaveProperty('details.attempt')
  })

  it("that is cut while it is collected is the client's error, translated once", async () => {
    const source = new PlayedSource((sink) => {
      chunk(sink, '{"SHOUT":')
      sink.fail(new GatewayError('upstream_failed', 'Cut.', { param: 'SHOUT', frame: 'data: {"ERROR":1}\n\n' }))
    })
    const answer = sent(() => Promise.resolve(new ProviderResponse(200, {}, source)))
    await expect(answer).rejects.toMatchObject({ message: 'Cut.', details: { param: 'SHOUT.say' } })
  })

  it("larger than can be held ends the upstream's work", async () => {
    const source = new PlayedSource((sink) => {
      for (let piece = 0; piece < 18; piece++) sink.data(Buffer.alloc(1024 * 1024, 0x20))
    })
    const answer = sent(() => Promise.resolve(new ProviderResponse(200, {}, source)))
    await expect(answer).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(source.asked).toContain('cancel')
  })
})

describe('A translated stream', () => {
  it("has the client's frames in their order, whatever the upstream's pieces", async () => {
    const text = `${frame('ONE')}: keep-alive\n\n${frame('')}${frame('TWO')}`
    const pieces = Array.from({ length: text.length }, (_, index) => text.charAt(index))
    const source = new PlayedSource((sink) => {
      for (const piece of pieces) chunk(sink, piece)
      sink.end()
    })
    const relay = new SseRelay(source, { completionMarks: ['"TWO"'], errorMark: 'event: error' })
    const { response, received } = await stream(relay)
    expect(received.text).toBe('data: {"said":"ONE"}\n\n: keep-alive\n\ndata: {"said":"TWO"}\n\ndata: [DONE]\n\n')
    expect(received.outcome).toBe('ended')
    expect(response.usage).toBe(usage)
    expect(response.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-cache' })
    expect(response.headers).not.toHaveProperty('anthropic-ratelimit-tokens-remaining')
  })

  it('is the failure of an upstream that was only asked a question', async () => {
    const source = new PlayedSource(() => undefined)
    const { request } = shout()
    const question = { request, response: () => '{}', error: (error: GatewayError) => error }
    const asked = sendTranslated(question, undefined, () => Promise.resolve(new ProviderResponse(200, EVENTS, source)))
    await expect(asked).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(source.asked).toEqual(['cancel'])
  })

  it("that cannot be begun ends the upstream's work", async () => {
    const source = new PlayedSource(() => undefined)
    const unable = {
      ...shout(),
      events: () => {
        throw new GatewayError('invalid_request', 'Cannot be streamed.')
      },
    }
    const refused = sent(() => Promise.resolve(new ProviderResponse(200, EVENTS, source)), unable)
    await expect(refused).rejects.toThrow('Cannot be streamed.')
    expect(source.asked).toEqual(['cancel'])
  })

  it('that is cut has no end', async () => {
    const source = new PlayedSource((sink) => {
      chunk(sink, frame('ONE'))
    })
    const { received } = await stream(source)
    source.sink.fail(new GatewayError('upstream_failed', 'Cut.', { frame: 'data: {"ERROR":1}\n\n' }))
    expect(received.text).toBe('data: {"said":"ONE"}\n\n')
    expect(received.outcome).toMatchObject({ message: 'Cut.', details: { param: '.say' } })
    expect(received.outcome).not.toHaveProperty('details.frame')
  })

  it("that fails has the frame that the client's dialect has for it", async () => {
    const source = new PlayedSource((sink) => {
      chunk(sink, frame('ONE'))
    })
    const events = (): EventTranslation => ({
      ...shout().events(),
      failure: ({ message }) => `data: failed: ${message}\n\n`,
    })
    const received = new Received()
    const { body } = await sent(() => Promise.resolve(new ProviderResponse(200, EVENTS, source)), {
      ...shout(),
      events,
    })
    if (Buffer.isBuffer(body)) throw new Error('no stream')
    body.start(received)
    source.sink.fail(new GatewayError('upstream_failed', 'Cut.'))
    expect(received.outcome).toMatchObject({ details: { frame: 'data: failed: Cut.\n\n' } })
  })

  it('that fails before its first frame is an error with a status', async () => {
    const source = new PlayedSource((sink) => {
      sink.fail(new GatewayError('upstream_failed', 'Gone.'))
    })
    await expect(stream(source)).rejects.toMatchObject({ message: 'Gone.', details: { param: '.say' } })
  })

  it("with an event that cannot be translated ends there, and ends the upstream's work", async () => {
    const source = new PlayedSource((sink) => {
      chunk(sink, frame('ONE'))
    })
    const { received } = await stream(source)
    chunk(source.sink, `data: {"other":1}\n\n${frame('TWO')}`)
    chunk(source.sink, frame('THREE'))
    source.sink.end()
    expect(received.text).toBe('data: {"said":"ONE"}\n\n')
    expect(received.outcome).toMatchObject({ kind: 'upstream_failed' })
    expect(received.outcome).not.toHaveProperty('details.attempt')
    expect(source.asked).toContain('cancel')
  })

  it.each([
    ['broken JSON', 'data: {"SHOUT":"TW\n\n'],
    ['no object', 'data: "TWO"\n\n'],
  ])('with an event that is %s does not look whole', async (_what, broken) => {
    const source = new PlayedSource((sink) => {
      chunk(sink, frame('ONE'))
    })
    const { received } = await stream(source)
    chunk(source.sink, `${broken}${frame('THREE')}`)
    source.sink.end()
    expect(received.text).toBe('data: {"said":"ONE"}\n\n')
    expect(received.outcome).toMatchObject({ kind: 'upstream_failed' })
  })

  it('goes on over frames that say nothing', async () => {
    const source = new PlayedSource((sink) => {
      chunk(sink, `${frame('ONE')}event: ping\n\ndata:\n\n${frame('TWO')}data: [DONE]\n\n`)
      sink.end()
    })
    const { received } = await stream(source)
    expect(received.text).toBe('data: {"said":"ONE"}\n\ndata: {"said":"TWO"}\n\ndata: [DONE]\n\n')
  })

  it('slows its upstream down, and lets it go, as its reader asks', async () => {
    const source = new PlayedSource((sink) => {
      chunk(sink, frame('ONE'))
    })
    const { response, received } = await stream(source)
    if (Buffer.isBuffer(response.body)) throw new Error('no stream')
    response.body.pause()
    response.body.resume()
    response.body.cancel()
    chunk(source.sink, frame('TWO'))
    source.sink.end()
    expect(source.asked).toEqual(['pause', 'resume', 'cancel'])
    expect(received.text).not.toContain('TWO')
    expect(received.outcome).toBeUndefined()
  })
})
