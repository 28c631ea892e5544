import { randomBytes } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import { fieldOf, parseJsonObject, textOf } from '../server/json-value.js'
import { recordHeaderViolations } from '../server/recorded-request.js'
import { MessagesTally, messagesUnits } from '../server/served-usage.js'
import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'
import { m1Faults, M1Rejection, reject, renderM1 } from './m1-errors.js'
import { betasOf, judgeHeaders, judgeM1Request, lastUserText } from './m1-request.js'
import {
  countTokens,
  decideBlocks,
  inputUsage,
  m1Events,
  m1Message,
  newMessageId,
  wholeContent,
} from './m1-response.js'
import { M1Threads } from './m1-threads.js'

export interface M1SimulatorOptions extends SimulatorOptions {
  /** The only accepted key. Default: every key but `bad`. */
  readonly apiKey?: string
}

interface M1Context {
  readonly apiKey: string | undefined
  /** Hashes of blocks written to the prompt cache. */
  readonly cached: Set<string>
  readonly threads: M1Threads
}

const BODY_LIMIT_BYTES = 32 * 1024 * 1024
const MESSAGES_PATH = '/v1/messages'
const COUNT_PATH = '/v1/messages/count_tokens'

/** Starts the Anthropic-like upstream M1: messages and token counting under `/v1`. */
export function startM1Simulator(options: M1SimulatorOptions = {}): Promise<Simulator> {
  const context: M1Context = { apiKey: options.apiKey, cached: new Set(), threads: new M1Threads() }
  return startSimulator((exchange) => serve(exchange, context), options)
}

async function serve(exchange: Exchange, context: M1Context): Promise<void> {
  const { request } = exchange
  recordHeaderViolations(request, request.headers['x-api-key'] === undefined ? 'authorization' : 'x-api-key')
  const headers = m1Headers()
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  const body = bytes === undefined ? undefined : parseJsonObject(bytes)
  try {
    judgeRoute(request.method, request.path)
    const version = judgeHeaders(request.headers, context.apiKey)
    if (await exchange.answeredByFault(m1Faults(headers), body === undefined ? undefined : lastUserText(body))) return
    if (bytes === undefined) throw new M1Rejection(413, 'Request exceeds the maximum size')
    if (body === undefined || !/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
      reject('The request body is not valid JSON.')
    }
    const counting = request.path === COUNT_PATH
    const terms = { version, betas: betasOf(request.headers['anthropic-beta']), counting }
    const judged = judgeM1Request(body, terms, context.threads)
    request.callsWithoutThoughts = judged.callsWithoutThoughts
    if (counting) await sendJson(exchange, headers, { input_tokens: countTokens(body) })
    else await answer(exchange, context, judged, headers)
  } catch (error) {
    if (!(error instanceof M1Rejection)) throw error
    const refusal = renderM1(error, headers)
    await exchange.send(refusal.status, refusal.headers, refusal.body)
  }
}

async function answer(
  exchange: Exchange,
  context: M1Context,
  request: ReturnType<typeof judgeM1Request>,
  headers: Record<string, string>,
): Promise<void> {
  const id = newMessageId()
  const blocks = decideBlocks(request)
  const input = inputUsage(request.body, context.cached)
  if (!request.stream) {
    const message = m1Message(request, id, blocks, input)
    context.threads.keep(request.body, id, wholeContent(blocks))
    exchange.serve(textOf(request.body['model']), messagesUnits(fieldOf(message, 'usage')))
    await sendJson(exchange, headers, message)
    return
  }
  const type = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }
  const tally = new MessagesTally()
  await exchange.stream(
    200,
    { ...headers, ...type },
    m1Events(request, id, blocks, input),
    m1Faults(headers),
    tally.note,
  )
  context.threads.keep(request.body, id, wholeContent(blocks))
  exchange.serve(textOf(request.body['model']), tally.units)
}

async function sendJson(exchange: Exchange, headers: Record<string, string>, body: object): Promise<void> {
  if (exchange.takeErrorFrame()) throw new M1Rejection(500, 'Internal server error')
  await exchange.send(200, { ...headers, 'content-type': 'application/json' }, JSON.stringify(body))
}

function judgeRoute(method: string, path: string): void {
  if (path !== MESSAGES_PATH && path !== COUNT_PATH) throw new M1Rejection(404, 'Not Found')
  if (method !== 'POST') throw new M1Rejection(405, 'Method Not Allowed')
}

/** Section 2 of the messages notes; the organisation id is for the account's owner only. */
function m1Headers(): Record<string, string> {
  const reset = new Date(Date.now() + 1000).toISOString().replace(/\.\d+Z$/, 'Z')
  const limit = (kind: string, most: number): Record<string, string> => ({
    [`anthropic-ratelimit-${kind}-limit`]: String(most),
    [`anthropic-ratelimit-${kind}-remaining`]: String(most - (kind === 'requests' ? 1 : 1000)),
    [`anthropic-ratelimit-${kind}-reset`]: reset,
  })
  return {
    'request-id': `req_011${randomBytes(12).toString('hex')}`,
    'anthropic-organization-id': 'org-simulated',
    ...limit('requests', 4000),
    ...limit('tokens', 480_000),
    ...limit('input-tokens', 400_000),
    ...limit('output-tokens', 80_000),
    'set-cookie': '__cf_bm=simulated; path=/; HttpOnly; Secure',
    'cf-cache-status': 'DYNAMIC',
    server: 'cloudflare',
    via: '1.1 google',
  }
}
