import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { MetricsWatch } from './mixed/metrics-watch.js'

let server: Server | undefined
let watch: MetricsWatch | undefined

afterEach(async () => {
  await watch?.close()
  server?.close()
})

async function scraped(status: number, text: string): Promise<MetricsWatch> {
  await watch?.close()
  server?.close()
  server = createServer((_, response) => response.writeHead(status).end(text)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  watch = new MetricsWatch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await watch.scrape()
  return watch
}

const gauge = (name: string, ...samples: readonly string[]): string =>
  [`# HELP ${name} Of a test.`, `# TYPE ${name} gauge`, ...samples.map((sample) => name + sample), ''].join('\n')

describe('What the soak looks for in metrics', () => {
  it('is not found where nothing is under way', async () => {
    const { faults, scrapes } = await scraped(200, gauge('gateway_requests_in_flight', '{family="chat"} 0'))
    expect([faults, scrapes, watch?.leftAtRest()]).toEqual([[], 1, []])
  })

  it('is found where a single request is, of whatever family', async () => {
    await scraped(200, gauge('gateway_requests_in_flight', '{family="chat"} 0', '{family="video"} 1'))
    expect(watch?.leftAtRest()).toEqual(['gateway_requests_in_flight is 1 at rest'])
  })

  it('is found where a scrape is refused, or cannot be read', async () => {
    expect((await scraped(500, '')).faults).toEqual([expect.stringContaining('status 500')])
    expect((await scraped(200, 'gateway_requests_in_flight 1')).faults).toHaveLength(1)
  })
})
