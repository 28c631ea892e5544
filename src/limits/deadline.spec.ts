import { once } from 'node:events'
import { createServer, connect, type AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { Deadline } from './deadline.js'

const missed = (milliseconds: number): Promise<number> => {
  const startedAtMs = performance.now()
  return new Promise((resolve) => {
    new Deadline(milliseconds, () => {
      resolve(performance.now() - startedAtMs)
    })
  })
}

function stall(milliseconds: number): void {
  const endsAtMs = performance.now() + milliseconds
  while (performance.now() < endsAtMs);
}

describe('A deadline', () => {
  it('is missed after its time', async () => {
    const tookMs = await missed(40)
    expect(tookMs).toBeGreaterThanOrEqual(38)
    expect(tookMs).toBeLessThan(1000)
  })

  it('is never missed once it is cleared', async () => {
    let isMissed = false
    const deadline = new Deadline(4, () => {
      isMissed = true
    })
    deadline.clear()
    await missed(40)
    expect(isMissed).toBe(false)
  })

  it('is kept by an answer that came while this process was busy', async () => {
    const server = createServer((socket) => socket.on('data', (chunk) => socket.write(chunk))).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await once(client, 'connect')
    try {
      const outcome = await new Promise<string>((resolve) => {
        const deadline = new Deadline(50, () => {
          resolve('missed')
        })
        client.once('data', () => {
          deadline.clear()
          resolve('kept')
        })
        client.write('ping')
        stall(120)
      })
      expect(outcome).toBe('kept')
    } finally {
      client.destroy()
      server.close()
    }
  })
})
