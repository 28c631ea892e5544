import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'

let simulator: Simulator
let gateway: TestGateway

beforeAll(async () => {
  simulator = await startP1Simulator()
  gateway = await startGateway({
    channels: [{ id: 'p1', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-key' }],
  })
})

afterAll(async () => {
  await gateway.close()
  await simulator.close()
})

beforeEach(() => {
  simulator.reset()
})

const BODY = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: '#hang' }] })
const chat = (requestId: string, target = '/v1/chat/completions', body = BODY): string =>
  `POST ${target} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${TEST_KEY}\r\nx-request-id: ${requestId}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

function open(): Socket {
  const { port } = new URL(gateway.url)
  return connect(Number(port), '127.0.0.1').on('error', () => undefined)
}

async function answerTo(text: string): Promise<string> {
  const socket = open()
  socket.write(text)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return chunk.toString()
}

describe('Requests one behind the other on one connection', () => {
  it('all end upstream, and all get their log line, when their caller leaves', async () => {
    const socket = open()
    const started = new Promise<void>((resolve) => {
      let seen = 0
      const count = (): void => {
        if (++seen < 2) return
        simulator.off('received', count)
        resolve()
      }
      simulator.on('received', count)
    })
    socket.write(chat('pipelined-1') + chat('pipelined-2'))
    await started
    const leftAtMs = performance.now()
    socket.destroy()
    await simulator.idle()
    expect(performance.now() - leftAtMs).toBeLessThan(1000)
    expect(await gateway.logLine('pipelined-1')).toMatchObject({ status: 499 })
    expect(await gateway.logLine('pipelined-2')).toMatchObject({ status: 499 })
  })
})

describe('A request in the form a proxy sends', () => {
  it('is judged by the path it names', async () => {
    const answer = await answerTo(`GET http://gateway/v1/messages HTTP/1.1\r\nHost: gateway\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 405 /)
    expect(answer).toContain('"type":"error"')
  })

  it('is served like any other', async () => {
    const body = BODY.replace('#hang', 'hello')
    expect(await answerTo(chat('absolute', 'http://gateway/v1/chat/completions', body))).toMatch(/^HTTP\/1.1 200 /)
  })
})

describe('A request with oddities that do not concern the gateway', () => {
  it.each([
    ['no Host', 'GET /health/live HTTP/1.1\r\n\r\n', 200],
    ['an unknown expectation', 'GET /health/live HTTP/1.1\r\nHost: gateway\r\nExpect: miracles\r\n\r\n', 200],
    ['the method CONNECT', 'CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n', 400],
  ])('gets an answer with a body and a request id (%s)', async (_name, text, status) => {
    const answer = await answerTo(text)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer).toMatch(/x-request-id: req_[0-9a-f]{32}/)
    expect(answer).toMatch(/\r\n\r\n\{/)
  })
})

describe('What never becomes a request', () => {
  it('is refused in the dialect of the path it named', async () => {
    const answer = await answerTo('GET /v1/messages HTTP/1.1\r\nHost: gateway\r\nbroken header\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect(answer).toContain('{"type":"error","error":{"type":"invalid_request_error"')
  })

  it.each([
    ['POST /v1/document/parse', 'content-type: application/pdf', '{"code":1201,'],
    ['POST /v1/document/parse?timeout=1', 'content-type: application/json', '{"code":1201,'],
    ['POST /v1/messages', 'content-type: application/json', '{"type":"error",'],
    ['POST http://gateway/v1/messages', 'content-type: application/json', '{"type":"error",'],
  ])(
    'is refused in the dialect of its path when its client ends its side within the body: %s %s',
    async (line, type, begins) => {
      const { port } = new URL(gateway.url)
      const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
      socket.end(
        `${line} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${TEST_KEY}\r\n${type}\r\ncontent-length: 99\r\n\r\n{"half`,
      )
      const chunks: Buffer[] = []
      for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
      const answer = Buffer.concat(chunks).toString()
      expect(answer).toMatch(/^HTTP\/1.1 400 /)
      expect(answer.split('\r\n\r\n')[1]).toMatch(new RegExp(`^${begins.replace('{', '\\{')}`))
    },
  )

  it('does not keep its connection when its client never ends it', async () => {
    const accepted = once(gateway.server, 'connection') as Promise<[Socket]>
    const { port } = new URL(gateway.url)
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    socket.write('GARBAGE\r\n\r\n')
    socket.resume()
    const [connection] = await accepted
    await once(connection, 'close')
    socket.destroy()
  })
})
