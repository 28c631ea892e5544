import type { Exchange } from '../server/exchange.js'
import { recordHeaderViolations } from '../server/forwarded-headers.js'
import { startSimulator } from '../server/simulator-server.js'
import type { Simulator, SimulatorOptions } from '../server/simulator.js'
import { documentAnswer, readerFaults, refusalAnswer } from './reader-answers.js'
import { familyOf, type ReaderFamily, ReaderRefusal, readOrder, wordsOf } from './reader-request.js'

export interface ReaderSimulatorOptions extends SimulatorOptions {
  /** The only accepted bearer. Default: the check is off. */
  readonly apiKey?: string
}

/**
 * Starts the document reader: `POST /v1/document/parse` as the specification has it, Firecrawl's `/v2/scrape` and
 * `/v2/parse`, and Jina Reader's `/`. It fetches nothing: each URL has the same page. A URL whose last segment, or a file
 * whose name, begins with `fault-<word>` suffers that fault of `faults.ts`. What was read once is cached, and said to be.
 */
export function startReaderSimulator({ apiKey, ...options }: ReaderSimulatorOptions = {}): Promise<Simulator> {
  const known = new Set<string>()
  return startSimulator(async (exchange) => {
    const { method, path, headers } = exchange.request
    recordHeaderViolations(exchange.request, 'authorization')
    const family = method === 'POST' ? familyOf(path) : undefined
    if (family === undefined) return exchange.send(404, {}, '')
    const order = await readOrder(exchange, family)
    if (apiKey !== undefined && headers['authorization'] !== `Bearer ${apiKey}`) {
      return refuse(exchange, family, 401, 'Unauthorized')
    }
    if (await exchange.answeredByFault(readerFaults(family), wordsOf(order))) return undefined
    if (order instanceof ReaderRefusal) return refuse(exchange, family, order.status, order.message)
    const key = `${family} ${order.url} ${order.file?.sha1 ?? ''}`
    const isCached = known.has(key) && !order.isFresh
    known.add(key)
    return exchange.send(200, { 'content-type': 'application/json' }, documentAnswer(family, order, isCached))
  }, options)
}

const refuse = (exchange: Exchange, family: ReaderFamily, status: number, message: string): Promise<void> =>
  exchange.send(status, { 'content-type': 'application/json' }, refusalAnswer(family, status, message))
