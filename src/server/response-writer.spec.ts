import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ManualSource } from '../../test/support/byte-streams.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { writeResponse } from './response-writer.js'

const HEADERS = { 'content-type': 'text/event-stream' }

let server: Server
let source: ManualSource
let call: RequestContext
let answer: ProviderResponse
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

beforeEach(async () => {
  source = new ManualSource()
  call = newCall()
  answer = new ProviderResponse(200, { ...HEADERS }, source, undefined, 'frame')
  server = createServer((_request, response: ServerResponse) => {
    const { disconnect } = call
    response.once('close', () => {
      if (!response.writableFinished) disconnect.abort()
    })
    writeResponse(answer, response, call)
    server.emit('relaying')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(async () => {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
})

const portOf = (): number => (server.address() as AddressInfo).port

/** A client that reads nothing but raw bytes. */
async function rawClient(): Promise<Socket> {
  const relaying = once(server, 'relaying')
  const socket = connect(portOf(), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  await relaying
  return socket
}

async function textUntilClose(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString()))
  await once(socket, 'close')
  return text
}

async function begin(): Promise<IncomingMessage> {
  const request = get({ port: portOf(), host: '127.0.0.1', agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return text
}

const failure = (): GatewayError => new GatewayError('upstream_failed', 'The upstream broke off.')

describe('An answer of complete bytes', () => {
  it('is written at once with its length', async () => {
    answer = new ProviderResponse(201, { 'content-type': 'application/json' }, Buffer.from('{"ä":1.0}'))
    const response = await begin()
    expect(response.statusCode).toBe(201)
    expect(response.headers).toMatchObject({ 'content-length': '10', 'content-type': 'application/json' })
    expect(await textOf(response)).toBe('{"ä":1.0}')
    expect(call.log.bytesOut).toBe(10)
  })
})

describe('An answer on its way', () => {
  it('shows its headers before its first byte', async () => {
    const response = await begin()
    expect(response.statusCode).toBe(200)
    source.data('late')
    source.end()
    expect(await textOf(response)).toBe('late')
  })

  it('is written once for all pieces that arrived in one turn of the event loop, and passes each turn on at once', async () => {
    const socket = await rawClient()
    const text = textUntilClose(socket)
    source.data('ab', 'cd', 'ef')
    await turn()
    source.data('gh')
    await turn()
    source.data('ij')
    source.end()
    const [, body] = (await text).split('\r\n\r\n', 2)
    expect(body).toBe('6\r\nabcdef\r\n2\r\ngh\r\n2\r\nij\r\n0')
    expect(call.log.bytesOut).toBe(10)
  })

  it('reaches the caller piece by piece while it goes on', async () => {
    const response = await begin()
    for (const piece of ['one', 'two', 'three']) {
      const arrived = once(response, 'data')
      source.data(piece)
      expect(String((await arrived)[0])).toBe(piece)
    }
    source.end()
    await once(response, 'end')
  })

  it('pauses its source for a slow reader, and goes on when the reader does', async () => {
    const socket = await rawClient()
    socket.pause()
    const piece = Buffer.alloc(256 * 1024, '~')
    let sent = 0
    // The kernel takes the first pieces; once its buffers are full, no `resume` follows the `pause`.
    while (source.asked.at(-1) !== 'pause' && sent < 1000) {
      source.data(piece)
      sent++
      for (let turns = 0; turns < 5; turns++) await turn()
    }
    expect(source.asked.at(-1)).toBe('pause')
    const resumed = new Promise<void>((resolve) => {
      source.resume = () => {
        resolve()
      }
    })
    const text = textUntilClose(socket)
    socket.resume()
    await resumed
    source.end()
    expect((await text).split('~')).toHaveLength(sent * piece.length + 1)
  })

  it('is not written any more when its reader has left', async () => {
    const socket = await rawClient()
    const left = new Promise<void>((resolve) => {
      call.disconnect.onAbort(resolve)
    })
    socket.destroy()
    await left
    source.data('this is not read')
    source.end()
    await turn()
    expect(call.disconnect.aborted).toBe(true)
  })
})

describe('A failure after the first byte', () => {
  it.each(['application/octet-stream', 'audio/mpeg'])('of a file (%s) is visible as an aborted body', async (type) => {
    answer = new ProviderResponse(200, { 'content-type': type }, source, undefined, 'cut')
    const response = await begin()
    const arrived = once(response, 'data')
    source.data('half a file')
    await arrived
    const text = textOf(response)
    source.fail(failure())
    await expect(text).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(response.complete).toBe(false)
    expect(call.log.failure).toMatchObject({ kind: 'upstream_failed' })
  })

  it.each([
    [
      '/v1/chat/completions',
      'data: {"error":{"message":"The upstream broke off.","type":"upstream_error","param":null,"code":"upstream_failed"}}\n\n',
    ],
    [
      '/v1/audio/speech',
      'data: {"error":{"message":"The upstream broke off.","type":"upstream_error","param":null,"code":"upstream_failed"}}\r\n\r\n',
    ],
    [
      '/v1/messages',
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"The upstream broke off."},"request_id":"req_test"}\n\n',
    ],
  ])('of a stream under %s is one last frame of its dialect and no terminator', async (path, frame) => {
    call = newCall(path)
    const response = await begin()
    source.data('data: {}\n\n')
    source.fail(failure())
    expect(await textOf(response)).toBe(`data: {}\n\n${frame}`)
    expect(response.complete).toBe(true)
  })

  it('is shown with the frame of the upstream when it sent one', async () => {
    const response = await begin()
    source.fail(new GatewayError('upstream_failed', 'Words.', { frame: 'data: {"error":{}}\n\n' }))
    expect(await textOf(response)).toBe('data: {"error":{}}\n\n')
  })
})
