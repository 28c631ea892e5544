import { createServer, request, type ClientRequest } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { listenOnLoopback } from '../../test/support/loopback-server.js'
import { GatewayError } from '../core/errors.js'
import { readBody } from './read-body.js'

const MAXIMUM_BYTES = 1_000_000
const pattern = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, index) => (index * 31 + 7) % 251))

describe('A body that is read into memory', () => {
  let port: number
  let close: () => Promise<void>
  let outcomes: AsyncGenerator<Buffer | GatewayError>
  beforeEach(async () => {
    const waiting: ((outcome: Buffer | GatewayError) => void)[] = []
    const server = createServer((incoming, response) => {
      const settle = (outcome: Buffer | GatewayError): void => {
        waiting.shift()?.(outcome)
        response.end()
      }
      // As behind a guard that waits: what has arrived meanwhile is there already.
      setImmediate(() => {
        Promise.resolve(readBody(incoming, response, { maximumBytes: MAXIMUM_BYTES, timeoutMs: 20_000 })).then(
          settle,
          settle,
        )
      })
    })
    ;({ port, close } = await listenOnLoopback(server))
    outcomes = (async function* () {
      for (;;) yield await new Promise<Buffer | GatewayError>((resolve) => waiting.push(resolve))
    })()
  })
  afterEach(() => close())

  function post(headers: Readonly<Record<string, string>>): ClientRequest {
    const sent = request({ port, host: '127.0.0.1', method: 'POST', headers, agent: false })
    sent.on('error', () => undefined).on('response', (response) => response.resume())
    sent.flushHeaders()
    return sent
  }

  async function send(pieces: readonly Buffer[], headers: Readonly<Record<string, string>>): Promise<unknown> {
    const outcome = outcomes.next()
    const sent = post(headers)
    for (const piece of pieces) {
      await new Promise((resolve) => {
        sent.write(piece, resolve)
      })
    }
    sent.end()
    return (await outcome).value
  }

  it.each([0, 1, 65_535, 65_536, 65_537, 300_000, MAXIMUM_BYTES])(
    'of %i bytes is what was sent, announced or not, in one piece or many',
    async (length) => {
      const content = pattern(length)
      const pieces = [0, 1, 2].map((part) => content.subarray((part * length) / 3, ((part + 1) * length) / 3))
      for (const sent of [[content], pieces].map((all) => all.filter((piece) => piece.length > 0))) {
        for (const headers of [{ 'content-length': String(length) }, { 'transfer-encoding': 'chunked' }]) {
          expect(content.equals((await send(sent, headers)) as Buffer)).toBe(true)
        }
      }
    },
  )

  it('is refused where it is longer than it may be, also when no length was announced', async () => {
    expect(await send([pattern(MAXIMUM_BYTES), pattern(1)], { 'transfer-encoding': 'chunked' })).toMatchObject({
      kind: 'payload_too_large',
    })
  })

  it('is refused where far more was announced than it may have, without room for that', async () => {
    const outcome = outcomes.next()
    const sent = post({ 'content-length': '1000000000000000' })
    for (let part = 0; part < 11; part++) sent.write(pattern(100_000))
    expect((await outcome).value).toMatchObject({ kind: 'payload_too_large' })
    sent.destroy()
  })

  it('fails when its client leaves in the middle', async () => {
    const outcome = outcomes.next()
    const sent = post({ 'content-length': '200000' })
    sent.write(pattern(100_000), () => sent.destroy())
    expect((await outcome).value).toMatchObject({ kind: 'caller_left' })
  })
})
