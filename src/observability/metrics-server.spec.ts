import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { parseConfig } from '../config/load-config.js'
import { metricsAddress } from './metrics-address.js'
import { MetricsPortInUse, MetricsServer } from './metrics-server.js'

const TEXT = '# HELP gateway_a A, with ü.\n# TYPE gateway_a gauge\ngateway_a 1\n'
const HOST = '127.0.0.1'

const running: MetricsServer[] = []

afterEach(async () => {
  for (const server of running.splice(0)) await server.close()
})

function metricsServer(port?: number, collect: () => Promise<string> = () => Promise.resolve(TEXT)): MetricsServer {
  const server = new MetricsServer({ host: HOST, ...(port === undefined ? {} : { port }) }, collect)
  running.push(server)
  return server
}

async function listening(collect?: () => Promise<string>): Promise<string> {
  const server = metricsServer(0, collect)
  await server.listen()
  return `http://${HOST}:${String(server.port)}`
}

describe('The server of the metrics', () => {
  it('answers a scraper in the text format, whatever query it sends', async () => {
    const url = await listening()
    for (const path of ['/metrics', '/metrics?name=x']) {
      const answer = await fetch(`${url}${path}`)
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        200,
        'text/plain; version=0.0.4; charset=utf-8',
      ])
      expect(await answer.text()).toBe(TEXT)
    }
    const head = await fetch(`${url}/metrics`, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([
      200,
      String(Buffer.byteLength(TEXT)),
      '',
    ])
  })

  it('has nothing else, and nothing to write to', async () => {
    const url = await listening()
    const statuses = ['/', '/metrics/', '/v1/models', '/health/live'].map(
      async (path) => (await fetch(url + path)).status,
    )
    expect(await Promise.all(statuses)).toEqual([404, 404, 404, 404])
    const written = await fetch(`${url}/metrics`, { method: 'POST', body: 'x' })
    expect([written.status, written.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  it('says so when nothing can be collected, without saying why', async () => {
    const url = await listening(() => Promise.reject(new Error('canary')))
    const answer = await fetch(`${url}/metrics`)
    expect(answer.status).toBe(500)
    expect(await answer.text()).not.toContain('canary')
  })

  it('names the port, and what to do, when somebody else listens there', async () => {
    const first = metricsServer(0)
    await first.listen()
    const second = metricsServer(first.port)
    const refused = await second.listen().catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(MetricsPortInUse)
    expect(String(refused)).toMatch(new RegExp(`\\(${String(first.port)}\\) is in use.*METRICS_PORT=<number>`))
    expect(second.port).toBeUndefined()
  })

  it('is off without a port', async () => {
    const server = metricsServer()
    await server.listen()
    expect(server.port).toBeUndefined()
  })

  it('listens once, may be closed twice, and cuts who is still there', async () => {
    const server = metricsServer(0, () => new Promise<never>(() => undefined))
    await server.listen()
    const port = server.port
    await server.listen()
    expect(server.port).toBe(port)
    const scraper = connect(port ?? 0, HOST).on('error', () => undefined)
    await once(scraper, 'connect')
    scraper.write(`GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n`)
    const ended = new Promise((resolve) => scraper.once('close', resolve))
    await server.close()
    await server.close()
    await ended
    expect(server.port).toBeUndefined()
  })
})

describe('Its address', () => {
  it.each([
    ['as the gateway, on 9090', {}, { host: '0.0.0.0', port: 9090 }],
    ['off with port 0', { server: { metricsPort: 0 } }, { host: '0.0.0.0' }],
    [
      'one of its own',
      { server: { host: '10.0.0.1', metricsPort: 9100 }, observability: { metricsHost: '127.0.0.1' } },
      { host: '127.0.0.1', port: 9100 },
    ],
  ])('is %s', (_what, sections, address) => {
    expect(metricsAddress(parseConfig(JSON.stringify(sections), {}))).toEqual(address)
  })
})
