import type OpenAI from 'openai'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import type { GatewayError } from '../../src/core/errors.js'
import { dataOf, framesOf } from '../../src/core/sse.js'
import type { ResponsesFields } from '../../src/dialects/openai-responses.js'
import type { Translator } from '../../src/dialects/translator.js'
import type { DialectPair } from '../../src/dialects/verdicts.js'
import { TranslationRun, type TranslationSetting } from './translation.js'

/** One request for a response through a translator, and its answers back. */
export class ResponsesTranslation<UpstreamFields extends object> extends TranslationRun<
  ResponsesFields,
  UpstreamFields
> {
  constructor(
    upstream: DialectPair['upstream'],
    translator: Translator<ResponsesFields, UpstreamFields>,
    request: object | string,
    setting?: TranslationSetting,
  ) {
    super({ client: 'responses', upstream }, translator, request, setting)
  }

  /** The whole answer, parsed; an answer may be given as it is spelled. */
  answer(upstream: object | string): Response {
    return JSON.parse(this.answerText(upstream)) as Response
  }

  /** Events of the whole stream. */
  events(upstream: readonly object[]): readonly ResponseStreamEvent[] {
    return eventsIn(this.frames(upstream))
  }

  /** Events of a stream that failed behind some events. */
  failedEvents(upstream: readonly object[], error: GatewayError): readonly ResponseStreamEvent[] {
    return eventsIn(this.failedFrames(upstream, error))
  }
}

/** Throws where a frame is not one of this dialect. */
export function eventsIn(frames: string): readonly ResponseStreamEvent[] {
  const events: ResponseStreamEvent[] = []
  for (const frame of framesOf(Buffer.from(frames))) {
    if (frame[0] === 0x3a) continue
    const event = JSON.parse(dataOf(frame) ?? '') as ResponseStreamEvent
    if (!frame.toString().startsWith(`event: ${event.type}\n`)) throw new Error(`${event.type} has another name`)
    if (event.sequence_number !== events.length) throw new Error(`${event.type} has another number`)
    events.push(event)
  }
  return events
}

/** What the vendor's own client makes of the events; rejects where their order is not right. */
export async function accumulated(events: readonly ResponseStreamEvent[]): Promise<Response> {
  const stream = Object.assign(
    (async function* () {
      await Promise.resolve()
      for (const event of events) yield event
    })(),
    { controller: new AbortController() },
  )
  const client = { responses: { create: () => Promise.resolve(stream) } }
  return await ResponseStream.createResponse(client as object as OpenAI, { model: 'asked', input: '' }).finalResponse()
}

/** The response of the last event. */
export function lastResponse(events: readonly ResponseStreamEvent[]): Response {
  const last = events.at(-1)
  if (last === undefined || !('response' in last)) throw new Error('The last event holds no response.')
  return last.response
}

/** Without what the vendor's client computes of it, and the moment of its end. */
export function comparable(response: Response): unknown {
  const text = JSON.stringify({ ...response, completed_at: null }, (name, value: unknown) =>
    COMPUTED.has(name) ? undefined : value,
  )
  return JSON.parse(text)
}

const COMPUTED: ReadonlySet<string> = new Set(['output_text', 'output_parsed', 'parsed', 'parsed_arguments'])
