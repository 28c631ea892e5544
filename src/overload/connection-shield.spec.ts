import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ConnectionShield, type ShieldedDoor } from './fast-reject.js'

const IDLE_MS = 75_000
const REFUSED = 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n'
const REQUEST = 'POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-length: 2\r\n\r\n{}'

/** Refuses, or lets in, as the test says. */
class Door implements ShieldedDoor {
  isRefusing = true
  isFull = true
  judged = 0
  answer: ServerResponse | undefined

  refusalText(): string | undefined {
    this.judged++
    return this.isFull ? REFUSED : undefined
  }

  letIn(parse: () => void): void {
    parse()
  }

  lastAnswer(): ServerResponse | undefined {
    return this.answer
  }
}

let door: Door
let server: Server
let client: Socket
/** The server's end of the connection. */
let accepted: Socket
beforeEach(async () => {
  // Time passes for the shields alone; Node's own timeouts of sockets are on its own clock.
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'setTimeout', 'queueMicrotask', 'performance', 'Date'] })
  door = new Door()
  server = createServer((_request, response) => response.end('served'))
  server.keepAliveTimeout = IDLE_MS
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connected = once(server, 'connection') as Promise<[Socket]>
  client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => undefined)
  ;[accepted] = await connected
  expect(await ask()).toMatch(/^HTTP\/1.1 200 .*served$/s)
  ConnectionShield.raise(accepted, door)
})
afterEach(async () => {
  client.destroy()
  server.close()
  await once(server, 'close')
  jest.useRealTimers()
})

async function ask(bytes = REQUEST): Promise<string> {
  client.write(bytes)
  const [answer] = (await once(client, 'data')) as [Buffer]
  return answer.toString()
}

describe('A shielded connection', () => {
  it('is refused without the server, and served by it when there is room, and refused again', async () => {
    expect(await ask()).toBe(REFUSED)
    door.isFull = false
    expect(await ask()).toMatch(/served$/)
    door.isFull = true
    expect(await ask()).toBe(REFUSED)
  })

  it('goes to the server for good once nothing is refused any more', async () => {
    door.isRefusing = false
    expect(await ask()).toMatch(/served$/)
    door.isRefusing = true
    expect([await ask(), door.judged]).toEqual([expect.stringMatching(/served$/), 0])
  })

  it('is shielded once, however often it is asked for', async () => {
    ConnectionShield.raise(accepted, door)
    ConnectionShield.raise(accepted, door)
    door.isFull = false
    expect([await ask(), door.judged]).toEqual([expect.stringMatching(/served$/), 1])
  })

  it('can be shielded again after it went to the server', async () => {
    door.isRefusing = false
    await ask()
    door.isRefusing = true
    ConnectionShield.raise(accepted, door)
    expect(await ask()).toBe(REFUSED)
  })

  it('stays open while it is used, and is closed when it is not', async () => {
    expect(await ask()).toBe(REFUSED)
    for (let round = 0; round < 5; round++) {
      jest.advanceTimersByTime(IDLE_MS + 1_000)
      expect(await ask()).toBe(REFUSED)
    }
    jest.advanceTimersByTime(2 * (IDLE_MS + 1_000))
    await once(client, 'close')
  })

  it.each(['let in', 'given back'])('has the timeout of the server again when it is %s', async (how) => {
    const timeoutMs = accepted.timeout
    expect(timeoutMs).toBeGreaterThanOrEqual(IDLE_MS)
    await ask()
    expect([accepted.timeout, jest.getTimerCount()]).toEqual([0, 1])
    door.isFull = how !== 'let in'
    door.isRefusing = how === 'let in'
    await ask()
    expect([accepted.timeout, jest.getTimerCount()]).toEqual([timeoutMs, 0])
  })

  it('leaves no timer behind when its client goes', async () => {
    await ask()
    const closed = once(accepted, 'close')
    client.destroy()
    await closed
    expect(jest.getTimerCount()).toBe(0)
  })
})

describe('A connection whose last answer is not over', () => {
  it('is not shielded', async () => {
    door.isRefusing = false
    await ask()
    door.answer = {} as ServerResponse
    door.isRefusing = true
    ConnectionShield.raise(accepted, door)
    // A shield that was raised all the same would give way to an answer that is not over.
    door.answer = undefined
    expect([await ask(), door.judged]).toEqual([expect.stringMatching(/served$/), 0])
  })
})
