import type OpenAI from 'openai'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { GatewayError } from '../../src/core/errors.js'
import { JsonBody } from '../../src/core/json-body.js'
import { JsonTexts } from '../../src/core/json-text.js'
import { dataOf, framesOf } from '../../src/core/sse.js'
import { factsOf, type ModelFacts } from '../../src/dialects/model-facts.js'
import type { ResponsesFields } from '../../src/dialects/openai-responses.js'
import type { Seals, Thoughts, Translation, Translator } from '../../src/dialects/translator.js'
import { type DialectPair, Verdicts } from '../../src/dialects/verdicts.js'

type JsonObject = Record<string, unknown>

const SEAL = 'sealed.'

/** Seals that anybody can open, and that are the same each time. */
const OPEN_SEALS: Seals = {
  seal: (text) => SEAL + Buffer.from(text).toString('base64url'),
  open: (sealed) =>
    sealed.startsWith(SEAL) ? Buffer.from(sealed.slice(SEAL.length), 'base64url').toString() : undefined,
}

export const sealed = (text: string): string => OPEN_SEALS.seal(text)

export interface TranslationSetting {
  readonly facts?: Partial<ModelFacts>
  readonly isStrict?: boolean
  readonly thoughts?: Thoughts
  readonly memory?: { add(bytes: number): void }
}

/** One request through a translator, and its answers back. */
export class ResponsesTranslation<UpstreamFields extends object> {
  readonly verdicts: Verdicts
  readonly translation: Translation<UpstreamFields>

  constructor(
    upstream: DialectPair['upstream'],
    translator: Translator<ResponsesFields, UpstreamFields>,
    request: object | string,
    { facts = {}, isStrict = false, thoughts, memory }: TranslationSetting = {},
  ) {
    this.verdicts = new Verdicts({ client: 'responses', upstream }, isStrict)
    const text = typeof request === 'string' ? request : JSON.stringify({ model: 'asked', ...request })
    const parsed = JsonBody.parse(Buffer.from(text))
    const target = {
      upstreamModel: 'upstream-model',
      facts: { ...factsOf(undefined), ...facts },
      requestId: 'req_1',
      seals: OPEN_SEALS,
      thoughts,
      memory,
    }
    this.translation = translator(parsed.as(parsed.fields as object as ResponsesFields), target, this.verdicts)
  }

  /** The upstream's request, parsed. */
  get sent(): JsonObject {
    return JSON.parse(this.sentText) as JsonObject
  }

  get sentText(): string {
    return this.translation.request.bytes.toString()
  }

  /** The whole answer, parsed; an answer may be given as it is spelled. */
  answer(upstream: object | string): Response {
    return JSON.parse(this.answerText(upstream)) as Response
  }

  answerText(upstream: object | string): string {
    const text = typeof upstream === 'string' ? upstream : JSON.stringify(upstream)
    return this.translation.response(JSON.parse(text) as JsonObject, new JsonTexts(Buffer.from(text)))
  }

  /** Events of the whole stream. */
  events(upstream: readonly object[]): readonly ResponseStreamEvent[] {
    const events = this.translation.events()
    return eventsIn([...upstream.map((data) => events.event(data as JsonObject)), events.end()].join(''))
  }

  /** Events of a stream that failed behind some events. */
  failedEvents(upstream: readonly object[], error: GatewayError): readonly ResponseStreamEvent[] {
    const events = this.translation.events()
    const frames = upstream.map((data) => events.event(data as JsonObject))
    return eventsIn([...frames, events.failure?.(error) ?? ''].join(''))
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

/** The error that the work throws. */
export function thrownBy(work: () => unknown): GatewayError {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('Nothing was thrown.')
}
