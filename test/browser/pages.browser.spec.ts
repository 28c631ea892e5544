import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { build } from 'esbuild'
import { type Browser, chromium, type Page } from 'playwright-core'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { listenOnLoopback, type LoopbackServer } from '../support/loopback-server.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'

/** As Debian installs it: `apt-get install chromium`. */
const CHROMIUM = '/usr/bin/chromium'

const EXAMPLE = join(process.cwd(), 'examples/clients/browser')

/** The example, and the SDKs, under every name that leads to this machine. */
async function startPages(): Promise<LoopbackServer> {
  const { outputFiles } = await build({
    entryPoints: ['test/browser/sdks.mjs'],
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
  })
  const files: Readonly<Record<string, readonly [type: string, text: string]>> = {
    '/': ['text/html', await readFile(join(EXAMPLE, 'index.html'), 'utf8')],
    '/gateway.mjs': ['text/javascript', await readFile(join(EXAMPLE, 'gateway.mjs'), 'utf8')],
    '/sdks.js': ['text/javascript', outputFiles[0]?.text ?? ''],
  }
  const server = createServer((request, response) => {
    const [type, text] = files[request.url ?? ''] ?? ['text/plain', '']
    response.writeHead(text === '' ? 404 : 200, { 'content-type': `${type}; charset=utf-8` }).end(text)
  })
  return listenOnLoopback(server)
}

describe('a page in Chromium', () => {
  let p1: Simulator
  let m1: Simulator
  let gateway: TestGateway
  let browser: Browser
  let pages: LoopbackServer

  beforeAll(async () => {
    if (!existsSync(CHROMIUM)) throw new Error(`There is no ${CHROMIUM}: apt-get install chromium`)
    p1 = await startP1Simulator({ apiKey: UPSTREAM_KEY })
    m1 = await startM1Simulator({ apiKey: UPSTREAM_KEY })
    const channels = [p1Channel('p1', p1), { id: 'm1', provider: 'm1', baseUrl: m1.url, credentials: UPSTREAM_KEY }]
    gateway = await startGateway({
      channels,
      sections: { server: { cors: { allowedOrigins: ['http://app.test:*'] } } },
    })
    pages = await startPages()
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: [
        '--no-sandbox',
        '--host-resolver-rules=MAP *.test 127.0.0.1',
        '--autoplay-policy=no-user-gesture-required',
      ],
    })
  })
  afterAll(async () => {
    await browser.close()
    await gateway.close()
    await Promise.all([pages.close(), p1.close(), m1.close()])
  })

  async function open(host: string): Promise<Page> {
    const page = await browser.newPage()
    await page.goto(`http://${host}:${pages.port}/`)
    await page.addScriptTag({ url: '/sdks.js' })
    await page.fill('#url', gateway.url)
    await page.fill('#key', TEST_KEY)
    return page
  }

  /** Calls one of the functions of `sdks.mjs`. */
  const run = (page: Page, name: string): Promise<unknown> =>
    page.evaluate(`${name}(${JSON.stringify({ url: gateway.url, key: TEST_KEY })})`)

  describe('of an allowed origin', () => {
    let page: Page
    beforeAll(async () => {
      page = await open('app.test')
    })
    afterAll(() => page.close())

    /** What the example shows after a click. */
    const click = async (id: string): Promise<[state: string | null, text: string | null]> => {
      await page.click(`#${id}`)
      await page.waitForSelector('#output:is([data-state=done],[data-state=failed])')
      return [await page.getAttribute('#output', 'data-state'), await page.textContent('#output')]
    }

    it('streams a chat by fetch', async () => {
      expect(await click('chat')).toEqual(['done', 'You said: Hello!'])
    })

    it('plays speech in an audio element, and uploads it to read its words', async () => {
      expect(await click('speak')).toEqual(['done', expect.stringMatching(/^The audio has checksum/)])
      await page.waitForFunction('document.querySelector("audio").currentTime > 0.1')
    })

    it('speaks with a realtime model, its key among the subprotocols', async () => {
      const [state, text] = await click('ask')
      expect([state, text]).toEqual(['done', expect.stringContaining('Hello!')])
    })

    it('shows the message of a refusal', async () => {
      await page.fill('#key', 'unknown')
      const [state, text] = await click('chat')
      await page.fill('#key', TEST_KEY)
      expect([state, text]).toEqual(['failed', expect.stringMatching(/^401: /)])
      expect(await run(page, 'readRefusal')).toEqual({
        message: expect.stringContaining('The nearest path is /v1/chat/completions'),
        requestId: expect.stringMatching(/^req_/),
      })
    })

    it('chats, streams and lists models with the official SDKs', async () => {
      expect(await run(page, 'useSdks')).toEqual({
        streamed: 'You said: Hello',
        message: 'You said: Hello',
        model: 'model',
      })
    })
  })

  describe('of another origin', () => {
    beforeEach(() => {
      p1.reset()
    })

    it('sees nothing, and nothing is asked of an upstream', async () => {
      const page = await open('stranger.test')
      expect(await run(page, 'tryAll')).toEqual(['TypeError', 'TypeError', 'TypeError', 'TypeError'])
      await page.close()
      expect(p1.requests).toEqual([])
    })
  })

  it('that is opened at the address of the gateway says what this is, and leads to the documents', async () => {
    const page = await browser.newPage()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(gateway.url)
    expect(await page.textContent('h1')).toBe('Multi-Model Gateway')
    await page.click('text=Documentation')
    await page.getByText('/v1/chat/completions', { exact: true }).first().waitFor()
    await page.close()
    expect(faults).toEqual([])
  })
})
