import type { Exchange } from '../server/exchange.js'
import { startSimulator } from '../server/simulator-server.js'
import type { Simulator, SimulatorOptions } from '../server/simulator.js'
import { isSignedWith } from './webhook-signature.js'

export interface CallbackReceiverOptions extends SimulatorOptions {
  /** `whsec_<base64>`: what came is checked by it. */
  readonly secret?: string
}

/** A notification as it came. */
export interface ReceivedCallback {
  /** The content type and the three of Standard Webhooks, as far as they came. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Whether it is signed with the secret; absent without one. */
  readonly verified?: boolean
}

export interface CallbackReceiver extends Simulator {
  /** Newest last, at most 100. */
  readonly received: readonly ReceivedCallback[]
}

const REMEMBERED_CALLBACKS = 100
const BODY_LIMIT_BYTES = 1024 * 1024
const SHOWN_HEADERS = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' }

/**
 * Starts a place to send notifications to, for whoever has no server at hand: takes them by `POST /hook`, and shows
 * what came by `GET /received`, as a JSON array, newest last.
 */
export async function startCallbackReceiver(options: CallbackReceiverOptions = {}): Promise<CallbackReceiver> {
  const received: ReceivedCallback[] = []
  const simulator = await startSimulator(async (exchange) => {
    const { method, path } = exchange.request
    if (method === 'POST' && path === '/hook') await receive(exchange, received, options.secret)
    else if (method === 'GET' && path === '/received') await exchange.send(200, JSON_HEADERS, shown(received))
    else await exchange.send(404, JSON_HEADERS, '{"error":"POST /hook takes callbacks, GET /received shows them"}\n')
  }, options)
  return Object.assign(simulator, { received })
}

async function receive(exchange: Exchange, received: ReceivedCallback[], secret: string | undefined): Promise<void> {
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  const refused = { status: 500, headers: JSON_HEADERS, body: '{}' }
  const dialect = { statusAnswer: () => refused, errorFrames: () => [] }
  if (await exchange.answeredByFault(dialect, undefined)) return
  if (bytes === undefined) {
    await exchange.send(413, JSON_HEADERS, '{}')
    return
  }
  const { headers } = exchange.request
  const body = bytes.toString('utf8')
  received.push({
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => SHOWN_HEADERS.includes(name))),
    body,
    ...(secret === undefined ? {} : { verified: isSignedWith(secret, headers, body, Date.now()) }),
  })
  if (received.length > REMEMBERED_CALLBACKS) received.shift()
  await exchange.send(200, JSON_HEADERS, '{}')
}

/** Bodies that are JSON are shown as they came, so that no number changes on the way. */
function shown(received: readonly ReceivedCallback[]): string {
  const entries = received.map(({ headers, body, verified }) => {
    const about = JSON.stringify({ headers, ...(verified === undefined ? {} : { verified }) })
    return `${about.slice(0, -1)},"body":${isJson(body) ? body : JSON.stringify(body)}}`
  })
  return `[${entries.join(',\n ')}]\n`
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
