import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { ADMIN_KEY, adminCaller, CONFIGURATION, keys } from '../support/admin-lab.js'
import { eventually } from '../support/eventually.js'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { openRaw } from '../support/gateway.js'
import { parseScrape, valueOf } from '../support/prometheus-text.js'
import { startRawUpstream, unusedPort } from '../support/raw-upstream.js'
import { directoryWithStore } from '../support/stores.js'

describe('process admin key', () => {
  let directory: string
  let gateway: GatewayProcess | undefined

  const configure = (text: string): Promise<void> => writeFile(join(directory, 'gateway.yaml'), text)

  beforeAll(async () => {
    directory = await directoryWithStore()
  })

  afterEach(async () => {
    gateway?.child.kill('SIGKILL')
    await gateway?.exited
    gateway = undefined
  })
  afterAll(() => rm(directory, { recursive: true }))

  describe('an admin key', () => {
    it('that npm run keys makes is one that the gateway starts with', async () => {
      const { code, output } = await keys(directory, ['admin-key'])
      expect([code, output]).toEqual([0, expect.stringMatching(/^sk-gw-admin-[0-9A-Za-z]{43}\n$/)])
      await configure(CONFIGURATION(output.trim()))
      gateway = runGateway(directory)
      expect((await adminCaller(await gateway.listening(), output.trim()).call('GET', '/keys')).status).toBe(200)
    })

    it.each(['admin', 'a'.repeat(300), 'correct-horse-battery-staple', '123e4567-e89b-12d3-a456-426614174000'])(
      'that is easy to guess stops the start, and is not said: %s',
      async (weak) => {
        await configure(CONFIGURATION(weak))
        gateway = runGateway(directory)
        const { code, output, errors } = await gateway.exited
        expect(code).toBe(1)
        expect(errors).toContain('auth.adminKey: is too easy to guess')
        if (weak !== 'admin') expect(output + errors).not.toContain(weak)
      },
      30_000,
    )
  })

  describe('POST /admin/v1/config/reload', () => {
    it('does what SIGHUP does, and answers with every fault when it does not', async () => {
      await configure(CONFIGURATION())
      gateway = runGateway(directory)
      const admin = adminCaller(await gateway.listening())
      await configure(CONFIGURATION(ADMIN_KEY, 'server: { port: 1 }\nlogging: { level: loud }\nfoo: 1'))
      const refused = await admin.call('POST', '/config/reload')
      expect(refused).toMatchObject({
        status: 422,
        json: {
          error: {
            code: 'configuration_refused',
            faults: [
              expect.stringContaining('document: unknown key "foo"'),
              expect.stringContaining('logging.level: must be one of'),
            ],
          },
        },
      })
      await configure(CONFIGURATION(ADMIN_KEY, 'database: { maxConnections: 3 }\nbreaker: { failures: 7 }'))
      const applied = await admin.call('POST', '/config/reload')
      expect(applied).toMatchObject({ status: 200, json: { object: 'config_reload', needs_restart: ['database'] } })
      await gateway.said(/configuration reloaded/)
      // Without the key there is no administration any more.
      await configure('channels: []')
      expect((await admin.call('POST', '/config/reload')).status).toBe(200)
      expect((await admin.call('POST', '/config/reload')).status).toBe(404)
    })
  })
})

describe('process metrics', () => {
  const running: GatewayProcess[] = []
  const closers: (() => Promise<unknown>)[] = []

  afterEach(async () => {
    for (const gateway of running.splice(0)) await gateway.close()
    for (const close of closers.splice(0)) await close()
  })

  const KEY = 'process-test-key'

  async function configured(baseUrl: string, variables: Readonly<Record<string, string>>): Promise<GatewayProcess> {
    const directory = await emptyDirectory()
    const text = JSON.stringify({
      auth: { keys: [{ id: 'team', key: KEY }] },
      channels: [{ id: 'only', provider: 'p1', baseUrl, credentials: 'upstream-key' }],
    })
    await writeFile(join(directory, 'gateway.yaml'), text)
    const gateway = runGateway(directory, variables)
    running.push(gateway)
    return gateway
  }

  async function sandbox(variables: Readonly<Record<string, string>>): Promise<GatewayProcess> {
    const gateway = runGateway(await emptyDirectory(), variables)
    running.push(gateway)
    return gateway
  }

  const scrape = async (port: number) => parseScrape(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())

  describe('A gateway as a process', () => {
    it('tells its metrics on a port of their own, to the end of a drain', async () => {
      const port = await unusedPort()
      const asked: Socket[] = []
      const upstream = await startRawUpstream((socket) => asked.push(socket))
      closers.push(() => upstream.close())
      const gateway = await configured(`http://127.0.0.1:${upstream.port}`, { METRICS_PORT: String(port) })
      const url = await gateway.listening()
      expect(valueOf(await scrape(port), 'gateway_ready')).toBe(1)
      expect((await fetch(`${url}/metrics`)).status).toBe(404)

      const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] })
      const answer = openRaw(url, { path: '/v1/chat/completions', headers: { authorization: `Bearer ${KEY}` }, body })
      await eventually(() => asked.length === 1)
      gateway.child.kill('SIGTERM')
      await gateway.said(/"msg":"draining"/)
      const draining = await scrape(port)
      expect(valueOf(draining, 'gateway_ready')).toBe(0)
      expect(valueOf(draining, 'gateway_requests_in_flight', { family: 'chat' })).toBe(1)
      asked[0]?.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}')
      ;(await answer).resume()
      expect((await gateway.exited).code).toBe(0)
      await expect(scrape(port)).rejects.toThrow()
    })

    it('does not start on a port of the metrics that is in use, and says what to do', async () => {
      const other = createServer().listen(0, '127.0.0.1')
      closers.push(() => new Promise((resolve) => other.close(resolve)))
      await once(other, 'listening')
      const address = other.address()
      const port = typeof address === 'object' ? String(address?.port) : ''
      const { code, errors } = await (await configured('http://127.0.0.1:1', { METRICS_PORT: port })).exited
      expect(code).toBe(1)
      expect(errors).toBe(
        `The port of the metrics (${port}) is in use. Choose another with METRICS_PORT=<number>; 0 switches it off.\n`,
      )
    })

    it('keeps its metrics to itself in the sandbox: several of them run on one machine', async () => {
      const gateways = [await sandbox({ METRICS_PORT: '' }), await sandbox({ METRICS_PORT: '' })]
      for (const gateway of gateways) expect(await gateway.listening()).toMatch(/^http/)
    })

    it('loads the packages of traces only where there is a collector', async () => {
      const hook = `import { writeSync } from 'node:fs'
      export const load = (url, context, next) => {
        writeSync(1, 'loads ' + url + '\\n')
        return next(url, context)
      }`
      const script = `import { register } from 'node:module'
      register('data:text/javascript,' + ${JSON.stringify(encodeURIComponent(hook))})`
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(script)}`
      const loadedBy = async (variables: Readonly<Record<string, string>>): Promise<number> => {
        const gateway = await sandbox({ NODE_OPTIONS, ...variables })
        await gateway.listening()
        gateway.child.kill('SIGTERM')
        const { output } = await gateway.exited
        const files = [...output.matchAll(/^loads (file:.*\/dist\/.*)$/gm)].map(([, url = '']) => new URL(url))
        expect(files.length).toBeGreaterThan(1)
        // Bundles keep the names of classes. The package of the API is loaded in any case, by the library of the metrics.
        const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
        return texts.filter((text) => /(?:OTLPTraceExporter|BatchSpanProcessor)\w*=class/.test(text)).length
      }
      expect(await loadedBy({})).toBe(0)
      expect(await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })).toBeGreaterThan(0)
    })
  })
})
