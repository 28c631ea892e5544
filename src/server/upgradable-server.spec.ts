import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { UpgradableServer } from './upgradable-server.js'

let server: UpgradableServer
let clients: Socket[]
beforeEach(async () => {
  clients = []
  server = new UpgradableServer()
  server.on('upgrade', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => {
  for (const client of clients) client.destroy()
  server.close()
})

/** The two ends of a connection that asks to leave HTTP, and is adopted. */
async function leaving(): Promise<{ readonly client: Socket; readonly near: Socket }> {
  const asked = once(server, 'upgrade')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  clients.push(client)
  client.write('GET / HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
  const near = (await asked)[1] as Socket
  server.adopt(near)
  return { client, near }
}

describe('A server that is told to close', () => {
  it('all requests cuts those to leave HTTP, and leaves the sockets that have left it alone', async () => {
    const [waiting, left] = [await leaving(), await leaving()]
    server.handOver(left.near)
    const closed = once(waiting.client, 'close')
    server.closeAllRequests()
    await closed
    expect([waiting.near.destroyed, left.near.destroyed]).toEqual([true, false])
  })

  it('all connections cuts both', async () => {
    const [waiting, left] = [await leaving(), await leaving()]
    server.handOver(left.near)
    const closed = Promise.all([waiting, left].map(({ client }) => once(client, 'close')))
    server.closeAllConnections()
    await closed
  })

  it('forgets a socket that has closed before it was handed over', async () => {
    const { near } = await leaving()
    near.destroy()
    await once(near, 'close')
    server.handOver(near)
    expect(server).toMatchObject({ leaving: new Set(), upgraded: new Set() })
  })
})
