import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import type { SocketSimulator } from './websocket-protocol.js'
import { startSocketSimulator } from './websocket-server.js'

let simulator: SocketSimulator

/** Echoes each message until `stop`. */
beforeEach(async () => {
  simulator = await startSocketSimulator(
    {
      admit: ({ handshake }) =>
        handshake.path === '/echo'
          ? { admitted: true, headers: { 'x-trace': 't1' }, subprotocol: 'echo.1' }
          : { admitted: false, status: 403, headers: { 'content-type': 'text/plain' }, body: 'no' },
      converse: async (session) => {
        for (;;) {
          const message = await session.nextMessage()
          const text = message?.data.toString('utf8')
          if (message === undefined || text === undefined) return
          if (text === 'throw') throw new Error('on request')
          if (text === 'enough') session.clientMayLeave = true
          if (text === 'close') session.close(4001, 'on request')
          await session.send(message.isBinary ? message.data : text)
        }
      },
    },
    { maximumMessageBytes: 4 * 1024 * 1024 },
  )
})
afterEach(async () => {
  await simulator.close()
})

async function open(path = '/echo'): Promise<WebSocket> {
  const socket = new WebSocket(`${simulator.url}${path}`, ['echo.0', 'echo.1'], { headers: { 'x-odd': 'A' } })
  await once(socket, 'open')
  return socket
}

describe('what a socket simulator records', () => {
  it('keeps the handshake, every message and how the client left', async () => {
    const arriving = simulator.nextSession()
    const socket = await open('/echo?model=a%20b')
    const session = await arriving
    expect(socket.protocol).toBe('echo.1')
    expect(session.handshake).toMatchObject({ method: 'GET', path: '/echo', headers: { 'x-odd': 'A' } })
    expect(session.handshake.query.get('model')).toBe('a b')
    expect(session.answerHeaders).toEqual({ 'x-trace': 't1' })
    socket.send('hello')
    const [text, textIsBinary] = (await once(socket, 'message')) as [Buffer, boolean]
    socket.send(Buffer.from([1, 2]))
    const [bytes, bytesAreBinary] = (await once(socket, 'message')) as [Buffer, boolean]
    expect([text.toString(), textIsBinary, bytes.toString('hex'), bytesAreBinary]).toEqual([
      'hello',
      false,
      '0102',
      true,
    ])
    expect(session.messages).toEqual([
      { data: Buffer.from('hello'), isBinary: false },
      { data: Buffer.from([1, 2]), isBinary: true },
    ])
    expect(session).toMatchObject({ receivedMessages: 2, receivedBytes: 7, sentMessages: 2, sentBytes: 7 })
    expect([simulator.activeSessions, simulator.openConnections]).toEqual([1, 1])
    const closing = simulator.nextClose()
    socket.close(4000, 'bye')
    expect(await closing).toBe(session)
    expect(session.end).toEqual({ outcome: 'aborted', by: 'client', code: 4000, reason: 'bye' })
    await simulator.idle()
    expect([simulator.activeSessions, simulator.openConnections]).toEqual([0, 0])
  })

  it('tells a client that may leave from one that aborts', async () => {
    const socket = await open()
    socket.send('enough')
    await once(socket, 'message')
    socket.terminate()
    expect(await simulator.lastSession?.closed).toMatchObject({ outcome: 'finished', by: 'client', code: 1006 })
    const aborting = simulator.nextAbort()
    const other = await open()
    other.terminate()
    expect((await aborting).end?.outcome).toBe('aborted')
  })

  it('tells its own close from that of the client', async () => {
    const socket = await open()
    socket.send('close')
    const [code, reason] = (await once(socket, 'close')) as [number, Buffer]
    expect([code, reason.toString()]).toEqual([4001, 'on request'])
    expect(await simulator.lastSession?.closed).toMatchObject({ outcome: 'broken', by: 'simulator', code: 4001 })
  })

  it('keeps a mebibyte of messages and counts the rest', async () => {
    const socket = await open()
    for (let index = 0; index < 3; index += 1) {
      socket.send(Buffer.alloc(600_000))
      await once(socket, 'message')
    }
    expect(simulator.lastSession).toMatchObject({ receivedMessages: 3, receivedBytes: 1_800_000 })
    expect(simulator.lastSession?.messages).toHaveLength(1)
    socket.terminate()
  })

  it('records refused handshakes, those that are none, and plain requests', async () => {
    const refused = new WebSocket(`${simulator.url}/other`)
    const [error] = (await once(refused, 'error')) as [Error]
    expect(error.message).toContain('403')
    expect(await simulator.lastSession?.closed).toMatchObject({ outcome: 'refused', by: 'simulator' })
    const raw = connect(simulator.port, '127.0.0.1')
    raw.write('GET /echo HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n')
    expect(String(await once(raw, 'data'))).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(simulator.violations).toEqual(['invalid handshake: Invalid Upgrade header'])
    raw.destroy()
    expect((await fetch(`${simulator.httpUrl}/echo`)).status).toBe(404)
    expect(simulator.requests.map(({ path }) => path)).toEqual(['/echo'])
    simulator.reset()
    expect([simulator.sessions, simulator.requests, simulator.violations]).toEqual([[], [], []])
  })

  it('shows its own failures and messages too large as violations', async () => {
    const socket = await open()
    socket.send('throw')
    const [code] = (await once(socket, 'close')) as [number]
    expect(code).toBe(1006)
    expect(simulator.violations).toEqual([expect.stringMatching(/^simulator failure: Error: on request/)])
    simulator.reset()
    const other = await open()
    other.send(Buffer.alloc(5 * 1024 * 1024))
    expect(((await once(other, 'close')) as [number])[0]).toBe(1009)
    expect(simulator.violations).toEqual(['broken WebSocket message: Max payload size exceeded'])
  })
})

describe('faults of the handshake', () => {
  it('a queued status, delay and reset strike one handshake each', async () => {
    simulator.queueFault({ kind: 'status', status: 429, body: 'busy' })
    simulator.queueFault({ kind: 'delay', ms: 40 })
    simulator.queueFault({ kind: 'reset' })
    await expect(open()).rejects.toThrow('429')
    const startedAtMs = performance.now()
    const socket = await open()
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(35)
    socket.terminate()
    await expect(open()).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(await simulator.lastSession?.closed).toMatchObject({ outcome: 'broken', by: 'simulator' })
  })

  it('a handshake that hangs ends when the client leaves', async () => {
    simulator.queueFault({ kind: 'hang' })
    const arrived = new Promise((resolve) => simulator.once('handshake', resolve))
    const socket = new WebSocket(`${simulator.url}/echo`)
    socket.on('error', () => undefined)
    await arrived
    expect(simulator.activeSessions).toBe(1)
    const aborted = simulator.nextAbort()
    socket.terminate()
    expect((await aborted).openedAtMs).toBeUndefined()
  })
})

describe('closing a socket simulator', () => {
  it('destroys open sessions and handshakes that hang', async () => {
    const socket = await open()
    const session = simulator.lastSession
    simulator.queueFault({ kind: 'hang' })
    const arrived = new Promise((resolve) => simulator.once('handshake', resolve))
    const hanging = new WebSocket(`${simulator.url}/echo`)
    const failed = once(hanging, 'error')
    await arrived
    const closed = once(socket, 'close')
    await simulator.close()
    await Promise.all([closed, failed])
    expect(simulator.openConnections).toBe(0)
    expect(session?.end).toMatchObject({ outcome: 'broken', by: 'simulator' })
    // The one that afterEach closes.
    simulator = await startSocketSimulator({
      admit: () => ({ admitted: true }),
      converse: () => Promise.resolve(),
    })
  })
})
