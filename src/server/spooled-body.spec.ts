import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../../test/support/audio-uploads.js'
import { eventually } from '../../test/support/eventually.js'
import type { SpooledFile } from '../core/spooled-file.js'
import { spoolBody } from './spool-body.js'

const MEBIBYTE = 1_048_576

let close: () => Promise<void>
let port: number
let outcomes: Promise<SpooledFile>[]
let requests: IncomingMessage[]
let sockets: Socket[]
let limits: { maximumBytes: number; timeoutMs: number }

beforeEach(async () => {
  outcomes = []
  requests = []
  sockets = []
  limits = { maximumBytes: 3 * MEBIBYTE, timeoutMs: 20_000 }
  const server = createServer((request, response) => {
    requests.push(request)
    const outcome = spoolBody(request, limits)
    outcomes.push(outcome)
    outcome.catch(() => undefined).finally(() => response.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  close = async () => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})
afterEach(async () => {
  await close()
  expect(spoolsLeft()).toEqual([])
})

/** Sends a head and these pieces; the socket stays open. */
async function send(framing: string, ...pieces: readonly (Buffer | string)[]): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  sockets.push(socket.resume())
  socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${framing}\r\n\r\n`)
  for (const piece of pieces) socket.write(piece)
  await eventually(() => outcomes.length > 0)
  return socket
}

async function contentOf(spool: SpooledFile): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of spool.createReadStream() as AsyncIterable<Buffer>) chunks.push(chunk)
  await spool.remove()
  return Buffer.concat(chunks)
}

const bytes = (length: number): Buffer => Buffer.from(Uint8Array.from({ length }, (_, at) => at % 251))

describe('A body that is received as a file', () => {
  it.each([0, 1, 65_536, MEBIBYTE, 3 * MEBIBYTE])('arrives as it was sent: %i bytes', async (length) => {
    const body = bytes(length)
    await send(`content-length: ${length}`, body)
    expect((await contentOf(await (outcomes[0] as Promise<SpooledFile>))).equals(body)).toBe(true)
  })

  it('arrives in pieces as well', async () => {
    await send('transfer-encoding: chunked', '3\r\nabc\r\n', '2\r\nde\r\n', '0\r\n\r\n')
    expect((await contentOf(await (outcomes[0] as Promise<SpooledFile>))).toString()).toBe('abcde')
  })

  it('is refused as soon as it is too large, and nothing of it stays', async () => {
    await send('transfer-encoding: chunked', '300001\r\n', bytes(3 * MEBIBYTE + 1))
    await expect(outcomes[0]).rejects.toMatchObject({ kind: 'payload_too_large' })
    expect(requests[0]?.destroyed).toBe(false)
  })

  it('is refused when it takes too long, and nothing of it stays', async () => {
    limits = { ...limits, timeoutMs: 50 }
    await send(`content-length: ${2 * MEBIBYTE}`, bytes(2 * MEBIBYTE - 1))
    await expect(outcomes[0]).rejects.toMatchObject({ kind: 'request_timeout' })
  })

  it('ends with a caller who leaves, and nothing of it stays', async () => {
    const socket = await send(`content-length: ${3 * MEBIBYTE}`, bytes(2 * MEBIBYTE))
    if (process.platform === 'linux') await eventually(() => spoolsLeft().length === 1)
    socket.destroy()
    await expect(outcomes[0]).rejects.toMatchObject({ kind: 'caller_left' })
  })
})
