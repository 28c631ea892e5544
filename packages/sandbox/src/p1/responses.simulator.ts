import type { Exchange } from '../server/exchange.js'
import { type JsonObject, objectsOf, textOf } from '../server/json-value.js'
import { type OpenAiFaultOptions, openAiFaults, OpenAiRejection, reject } from '../server/openai-errors.js'
import { responsesTally, tokenUnits } from '../server/served-usage.js'
import { lastUserText } from './chat-text.js'
import { answerJson, pretty } from './json-request.js'
import { type P1Context, p1Headers } from './p1-context.js'
import { ResponseWriter } from './responses-events.js'
import { judgeCountRequest, judgeResponsesRequest, type ResponsesRequest } from './responses-request.js'
import { BackgroundRun, type StoredResponse } from './responses-store.js'
import { eventFrame, EVENTS_BEFORE_FAILURE, isLast, newId, type ResponseEvent } from './responses-wire.js'

type Options = OpenAiFaultOptions

const optionsOf = (exchange: Exchange): Options => ({
  headers: p1Headers(exchange, { tokenLimits: true }),
  render: pretty,
  lineEnd: '\n',
})

/** What may ask for a fault. */
const callerText = ({ input }: JsonObject): string =>
  typeof input === 'string' ? input : lastUserText({ messages: input })

/** POST /v1/responses. */
export async function serveResponses(exchange: Exchange, context: P1Context): Promise<void> {
  const options = optionsOf(exchange)
  await answerJson(exchange, options, callerText, async (body) => {
    const call: Call = { exchange, context, options, request: judgeResponsesRequest(body, context), id: newId('resp') }
    if (call.request.background) await answerInBackground(call)
    else if (call.request.stream) await answerInEvents(call)
    else await answerWhole(call)
  })
}

/** A request that was judged, and the id of its response. */
interface Call {
  readonly exchange: Exchange
  readonly context: P1Context
  readonly options: Options
  readonly request: ResponsesRequest
  readonly id: string
}

async function answerWhole({ exchange, context, request, options, id }: Call): Promise<void> {
  if (exchange.takeErrorFrame())
    throw new OpenAiRejection(500, 'The server had an error while processing your request.', { type: 'server_error' })
  const response = [...new ResponseWriter(request, id).events()].find(isLast)?.['response'] as JsonObject
  context.responses.keep(request, response)
  exchange.serve(request.model, tokenUnits(response['usage']))
  await sendJson(exchange, options, response)
}

async function answerInEvents({ exchange, context, request, options, id }: Call): Promise<void> {
  const writer = new ResponseWriter(request, id)
  const tally = responsesTally(request.inputTokens)
  const frames = function* (): Generator<string> {
    for (const event of writer.events()) {
      // Kept before it is sent: a client may continue as soon as it has read the end.
      if (isLast(event)) context.responses.keep(request, event['response'] as JsonObject)
      yield eventFrame(event)
    }
  }
  const faults = {
    ...openAiFaults(options),
    errorFrames: () => [...new ResponseWriter(request, id).failure()].map(eventFrame),
  }
  await exchange.stream(200, streamHeaders(options), frames(), faults, tally.note)
  exchange.serve(request.model, tally.units)
}

async function answerInBackground({ exchange, context, request, options, id }: Call): Promise<void> {
  const events = [...new ResponseWriter(request, id).events()]
  const failure = new ResponseWriter(request, id).failure()
  const made = exchange.takeErrorFrame() ? [...events.slice(0, EVENTS_BEFORE_FAILURE), ...failure] : events
  const run = new BackgroundRun(made, context.backgroundMs, (response) => {
    // What fails is not charged.
    if (response['usage'] !== null) exchange.serve(request.model, tokenUnits(response['usage']))
  })
  context.responses.keep(request, run.snapshot, run)
  if (request.stream) await streamRun(exchange, options, run, -1)
  else await sendJson(exchange, options, run.snapshot)
}

async function streamRun(exchange: Exchange, options: Options, run: BackgroundRun, after: number): Promise<void> {
  await exchange.stream(200, streamHeaders(options), frames(run.eventsAfter(after)), openAiFaults(options))
}

async function* frames(events: AsyncIterable<ResponseEvent>): AsyncGenerator<string> {
  for await (const event of events) yield eventFrame(event)
}

/** POST /v1/responses/input_tokens. */
export async function serveInputTokens(exchange: Exchange, context: P1Context): Promise<void> {
  const options = optionsOf(exchange)
  await answerJson(exchange, options, callerText, async (body) => {
    const { inputTokens } = judgeCountRequest(body, context)
    await sendJson(exchange, options, { object: 'response.input_tokens', input_tokens: inputTokens })
  })
}

/** GET /v1/responses/{id}. */
export async function serveStoredResponse(exchange: Exchange, context: P1Context): Promise<void> {
  const { response, run } = storedOf(exchange, context)
  judgeQuery(exchange, ['include', 'include_obfuscation', 'starting_after', 'stream'])
  const options = optionsOf(exchange)
  const { query } = exchange.request
  if (query.get('stream') !== 'true') {
    if (query.has('starting_after')) reject("'starting_after' is only allowed when 'stream' is true.", 'starting_after')
    if (await exchange.answeredByFault(openAiFaults(options), undefined)) return
    await sendJson(exchange, options, response)
    return
  }
  if (run === undefined) {
    reject('Only responses created with background=true can be streamed from here.', 'stream', 'invalid_value')
  }
  const after = numberOf(exchange, 'starting_after', 0, Number.MAX_SAFE_INTEGER) ?? -1
  if (await exchange.answeredByFault(openAiFaults(options), undefined)) return
  await streamRun(exchange, options, run, after)
}

/** DELETE /v1/responses/{id}. */
export async function deleteStoredResponse(exchange: Exchange, context: P1Context): Promise<void> {
  const options = optionsOf(exchange)
  const { id } = storedOf(exchange, context).response
  if (await exchange.answeredByFault(openAiFaults(options), undefined)) return
  context.responses.delete(textOf(id))
  await sendJson(exchange, options, { id, object: 'response', deleted: true })
}

/** POST /v1/responses/{id}/cancel. */
export async function cancelResponse(exchange: Exchange, context: P1Context): Promise<void> {
  const options = optionsOf(exchange)
  const { run } = storedOf(exchange, context)
  if (run === undefined) reject('Cannot cancel a synchronous response.')
  if (await exchange.answeredByFault(openAiFaults(options), undefined)) return
  run.cancel()
  await sendJson(exchange, options, run.snapshot)
}

/** GET /v1/responses/{id}/input_items: the newest first unless asked for otherwise. */
export async function serveInputItems(exchange: Exchange, context: P1Context): Promise<void> {
  const options = optionsOf(exchange)
  const { inputItems } = storedOf(exchange, context)
  judgeQuery(exchange, ['after', 'include', 'limit', 'order'])
  const { query } = exchange.request
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') {
    reject(`Invalid value: '${order}'. Supported values are: 'asc' and 'desc'.`, 'order', 'invalid_value')
  }
  const limit = numberOf(exchange, 'limit', 1, MAXIMUM_PAGE) ?? DEFAULT_PAGE
  const items = order === 'asc' ? inputItems : inputItems.toReversed()
  const rest = items.slice(startOf(items, query.get('after')))
  const data = rest.slice(0, limit)
  if (await exchange.answeredByFault(openAiFaults(options), undefined)) return
  const ends = { first_id: data.at(0)?.['id'] ?? null, last_id: data.at(-1)?.['id'] ?? null }
  await sendJson(exchange, options, { object: 'list', data, ...ends, has_more: rest.length > limit })
}

const DEFAULT_PAGE = 20
const MAXIMUM_PAGE = 100

function startOf(items: readonly JsonObject[], after: string | null): number {
  if (after === null) return 0
  const index = objectsOf(items).findIndex((item) => item['id'] === after)
  if (index === -1) throw new OpenAiRejection(404, `Item with id '${after}' not found.`, { param: 'after' })
  return index + 1
}

function storedOf(exchange: Exchange, context: P1Context): StoredResponse {
  return context.responses.get(decodeURIComponent(exchange.request.path.split('/')[3] ?? ''))
}

function judgeQuery(exchange: Exchange, names: readonly string[]): void {
  // Lists are written as `include[]=…` by the official library.
  const asked = [...exchange.request.query.keys()].map((name) => name.replace(/\[\d*\]$/, ''))
  const unknown = asked.find((name) => !names.includes(name))
  if (unknown !== undefined) reject(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter')
}

function numberOf(exchange: Exchange, name: string, least: number, most: number): number | undefined {
  const text = exchange.request.query.get(name)
  if (text === null) return undefined
  const number = Number(text)
  if (text !== '' && Number.isInteger(number) && number >= least && number <= most) return number
  reject(
    `Invalid '${name}': expected an integer from ${least} to ${most}, but got '${text}' instead.`,
    name,
    'invalid_value',
  )
}

const streamHeaders = (options: Options): Readonly<Record<string, string>> => ({
  ...options.headers,
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
})

async function sendJson(exchange: Exchange, options: Options, body: JsonObject): Promise<void> {
  await exchange.send(200, { ...options.headers, 'content-type': 'application/json' }, pretty(body))
}
