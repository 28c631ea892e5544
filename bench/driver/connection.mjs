import { connect } from 'node:net'
import { ResponseParser } from './response-parser.mjs'

/** One buffer for all connections: a read is handled before the next one starts. */
const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)

/** A keep-alive connection to 127.0.0.1 with one exchange at a time. */
export class Connection {
  #socket
  #parser = new ResponseParser()
  #exchange
  closed = false

  constructor(port) {
    const onread = { buffer: READ_BUFFER, callback: (length, buffer) => this.#read(length, buffer) }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    this.#socket.on('error', (error) => this.#fail(error))
    this.#socket.on('end', () => this.#fail(new Error('the other side ended the connection')))
    this.#socket.on('close', () => this.#fail(new Error('the connection closed')))
  }

  /** Of the answer that is being read, or was read last. */
  get status() {
    return this.#parser.status
  }

  /** Status line and headers of the last answer. */
  get head() {
    return this.#parser.head
  }

  /**
   * Sends one request. `exchange.onDone(status, bodyBytes)` is called when it is answered, `exchange.onError(error)`
   * when it is not or when `onDone` throws; `exchange.onBody(buffer, start, end)`, optional, sees the body's bytes.
   */
  send(request, exchange) {
    this.#exchange = exchange
    this.#parser.begin(exchange.onBody)
    this.#socket.write(request)
  }

  pause() {
    this.#socket.pause()
  }

  resume() {
    this.#socket.resume()
  }

  close() {
    this.#exchange = undefined
    this.closed = true
    this.#socket.destroy()
  }

  #read(length, buffer) {
    try {
      if (this.#exchange === undefined) throw new Error('a response without a request')
      if (this.#parser.feed(buffer, length)) this.#finish()
    } catch (error) {
      this.#fail(error)
    }
  }

  #finish() {
    const exchange = this.#exchange
    this.#exchange = undefined
    try {
      exchange.onDone(this.#parser.status, this.#parser.bodyBytes)
    } catch (error) {
      exchange.onError(error)
    }
  }

  #fail(error) {
    this.closed = true
    this.#socket.destroy()
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.onError(error)
  }
}

/**
 * Sends one request on a connection of its own.
 * @returns {Promise<{ status: number, bodyBytes: number, body: Buffer }>} `body` is empty unless `keepBody`
 */
export function exchangeOnce(port, request, { keepBody = true, onBody, timeoutMs = 30_000 } = {}) {
  const connection = new Connection(port)
  const parts = []
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no complete answer within ${timeoutMs} ms`)), timeoutMs)
    connection.send(request, {
      onBody: (buffer, start, end) => {
        if (keepBody) parts.push(Buffer.from(buffer.subarray(start, end)))
        onBody?.(connection, buffer, start, end)
      },
      onDone: (status, bodyBytes) => {
        clearTimeout(timer)
        resolve({ status, bodyBytes, body: Buffer.concat(parts) })
      },
      onError: (error) => {
        clearTimeout(timer)
        reject(error)
      },
    })
  }).finally(() => connection.close())
}
