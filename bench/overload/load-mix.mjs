import { exchangeOnce } from '../driver/connection.mjs'
import { SCENARIOS, wireBytes } from '../scenarios.mjs'

/**
 * What callers ask for, in the order in which they ask. `mixed`: half of it answers of 1 KB, four in ten streams of a
 * hundred chunks, one in ten speech of 200 KB. `chat`: the cheapest call there is and nothing else, against which
 * refusals weigh most.
 */
export const MIXES = {
  mixed: [...['chat', 'stream', 'chat', 'stream', 'chat'], ...['speech', 'chat', 'streamPlain', 'chat', 'streamPlain']],
  chat: ['chat'],
}

/** The calls of a load, one after the other and over again; each as its bytes and the length of its right answer. */
export class LoadMix {
  #calls
  #sent = 0

  constructor(calls) {
    this.#calls = calls
  }

  /** Asks for each kind once, so that what is counted later is known to be right. */
  static async probe(name, port) {
    const kinds = new Map()
    for (const kind of new Set(MIXES[name])) kinds.set(kind, await probed(SCENARIOS[kind], port))
    return new LoadMix(MIXES[name].map((kind) => kinds.get(kind)))
  }

  next() {
    return this.#calls[this.#sent++ % this.#calls.length]
  }
}

async function probed({ request, check }, port) {
  const bytes = wireBytes(request, { port })
  const { status, body, bodyBytes } = await exchangeOnce(port, bytes)
  if (status !== 200) throw new Error(`the gateway answered ${status}`)
  check(body)
  return { request: bytes, expectedBytes: bodyBytes }
}
