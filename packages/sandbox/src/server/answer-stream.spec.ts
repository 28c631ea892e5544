import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it } from '@jest/globals'

import { startSimulator } from './simulator-server.js'
import type { Simulator } from './simulator.js'

let simulator: Simulator | undefined

afterEach(async () => {
  await simulator?.close()
})

const PIECE = Buffer.alloc(1024 * 1024)

/** Streams mebibytes for ever and reports how many were made, and when the making was given up. */
async function startEndless(): Promise<{
  made: () => number
  givenUp: Promise<void>
  open: () => Promise<IncomingMessage>
}> {
  let count = 0
  let giveUp: () => void = () => undefined
  const givenUp = new Promise<void>((resolve) => (giveUp = resolve))
  function* endless(): Generator<Buffer> {
    try {
      for (;;) {
        count += 1
        yield PIECE
      }
    } finally {
      giveUp()
    }
  }
  const server = await startSimulator((exchange) => exchange.stream(200, {}, endless()))
  simulator = server
  const open = async (): Promise<IncomingMessage> => {
    const request = httpRequest(server.url).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return response
  }
  return { made: () => count, givenUp, open }
}

describe('a streamed answer', () => {
  it('makes no more pieces than the network takes while the caller does not read', async () => {
    const { made, open } = await startEndless()
    const response = await open()
    response.pause()
    for (let turn = 0; turn < 3000; turn += 1) await nextTurn()
    expect(made()).toBeLessThan(50)
    response.destroy()
  })

  it('goes on when the caller reads again', async () => {
    const { made, open } = await startEndless()
    const response = await open()
    response.pause()
    for (let turn = 0; turn < 100; turn += 1) await nextTurn()
    let received = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      received += chunk.length
      if (received > 100 * PIECE.length) break
    }
    expect(made()).toBeGreaterThan(100)
  })

  it('is given up as soon as the caller leaves', async () => {
    const { givenUp, open } = await startEndless()
    const response = await open()
    response.destroy()
    await givenUp
    expect(await simulator?.lastRequest?.closed).toBe('aborted')
  })
})
