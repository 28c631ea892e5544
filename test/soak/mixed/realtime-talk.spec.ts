import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocketServer } from 'ws'
import { RealtimeTalk } from './realtime-talk.js'

const KEY = 'soak-caller-canary'

let close: () => void = () => undefined
afterEach(() => {
  close()
})

const urlOf = (address: AddressInfo | string | null): string => `ws://127.0.0.1:${(address as AddressInfo).port}`

/** A gateway whose only answer has this status at its end. */
async function startSessions(status: string): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  close = () => {
    server.close()
  }
  server.on('connection', (socket) => {
    const say = (event: object): void => {
      socket.send(JSON.stringify(event))
    }
    say({ type: 'session.created' })
    socket.on('message', (text: Buffer) => {
      if (!text.toString().includes('"response.create"')) return
      say({ type: 'response.created' })
      say({ type: 'response.done', response: { status } })
    })
  })
  return urlOf(server.address())
}

/** A gateway that takes connections and answers nothing. */
async function startSilence(): Promise<string> {
  const server: Server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  close = () => {
    server.close()
  }
  server.on('connection', (socket) => socket.resume().on('error', () => undefined))
  return urlOf(server.address())
}

describe('A realtime session of the soak', () => {
  it.each([
    ['completed', 'answered'],
    ['failed', 'failed'],
    ['incomplete', 'failed'],
    ['cancelled', 'failed'],
  ])('whose answer is %s has %s', async (status, ending) => {
    const talk = new RealtimeTalk(await startSessions(status))
    expect(await talk.hold(KEY, 'whole')).toBe(ending)
    expect(talk.hung).toEqual([])
  })

  it('has failed, and is told, where its handshake is never answered', async () => {
    const talk = new RealtimeTalk(await startSilence(), 100)
    expect(await talk.hold(KEY, 'dropped')).toBe('failed')
    expect(talk.hung).toEqual(['dropped'])
  })
})
