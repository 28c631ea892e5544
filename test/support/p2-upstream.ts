import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { UpstreamTarget } from '../../src/upstream/upstream-client.js'
import { targetOf } from './raw-upstream.js'

/** A WebSocket server that hands each first message to the test, which answers with whatever it likes. */
export interface P2Upstream {
  readonly target: UpstreamTarget
  /** The messages received, in order, over all connections. */
  readonly received: readonly Buffer[]
  /** The server's ends of all connections, in order. */
  readonly sockets: readonly WebSocket[]
  /** Close codes the server has seen, in order. */
  readonly closeCodes: readonly number[]
  readonly close: () => Promise<void>
}

export async function startP2Upstream(
  answer: (socket: WebSocket, message: Buffer, index: number) => void,
): Promise<P2Upstream> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  const received: Buffer[] = []
  const sockets: WebSocket[] = []
  const closeCodes: number[] = []
  server.on('connection', (socket) => {
    const index = sockets.push(socket) - 1
    socket.on('message', (message: Buffer) => {
      received.push(message)
      answer(socket, message, index)
    })
    socket.on('close', (code) => closeCodes.push(code))
    socket.on('error', () => undefined)
  })
  await once(server, 'listening')
  return {
    target: targetOf((server.address() as AddressInfo).port),
    received,
    sockets,
    closeCodes,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.terminate()
      await closed
    },
  }
}

function frame(head: readonly number[], word: number | undefined, payload: Buffer): Buffer {
  const words = word === undefined ? [payload.length] : [word, payload.length]
  const numbers = Buffer.alloc(words.length * 4)
  words.forEach((value, index) => numbers.writeInt32BE(value, index * 4))
  return Buffer.concat([Buffer.from(head), numbers, payload])
}

export const acknowledgement = (): Buffer => frame([0x11, 0xb0, 0, 0], undefined, Buffer.alloc(0))
export const audio = (bytes: string | Buffer): Buffer => frame([0x11, 0xb1, 0, 0], 1, Buffer.from(bytes))
export const lastAudio = (bytes: string | Buffer = ''): Buffer => frame([0x11, 0xb3, 0, 0], -2, Buffer.from(bytes))
export const frontEnd = (): Buffer => frame([0x11, 0xc1, 0x10, 0], 1, Buffer.from('{}'))
export const errorFrame = (code: number, text: string): Buffer => frame([0x11, 0xf0, 0x10, 0], code, Buffer.from(text))
