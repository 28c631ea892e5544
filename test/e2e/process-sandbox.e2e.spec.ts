import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { OPEN_MODEL_ROW, SANDBOX_KEY } from '@multi-model-gateway/sandbox/sandbox.js'
import { Webhook } from 'standardwebhooks'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, sendRaw, TEST_KEY } from '../support/gateway.js'
import { listenOnLoopback } from '../support/loopback-server.js'
import { chats, UsageProcesses } from '../support/process-labs.js'
import { p1Channel } from '../support/provider-gateways.js'
import { dataDirectory } from '../support/stores.js'
import { recordsOf } from '../support/usage-lab.js'
import { VideoCaller } from '../support/video-caller.js'

/** A real key with the id of the sandbox's own: it would be shown whatever the sandbox has left under that. */
const SAME_ID = { auth: { keys: [{ id: 'sandbox', key: TEST_KEY }] } }

let lab: UsageProcesses
/** Where both are started, one after the other. */
let directory: string
let sandboxes: GatewayProcess[]

beforeAll(async () => {
  lab = await UsageProcesses.prepare()
})
beforeEach(async () => {
  directory = await emptyDirectory()
  sandboxes = []
})
afterEach(async () => {
  // All before the first removes the directory that they share: another one may still write there.
  for (const { child } of sandboxes) child.kill('SIGKILL')
  await Promise.all(sandboxes.map(({ exited }) => exited))
  for (const sandbox of sandboxes) await sandbox.close()
  await lab.end()
  await rm(directory, { recursive: true, force: true })
})
afterAll(() => lab.close())

/** Empty stores in them, so that no test has to wait for one to be made. */
async function fillWithStores(...paths: readonly string[]): Promise<void> {
  const template = await dataDirectory()
  for (const path of paths) {
    await mkdir(path, { recursive: true })
    await cp(template, path, { recursive: true })
  }
  await rm(template, { recursive: true })
}

function startSandbox(variables: Readonly<Record<string, string>> = {}): GatewayProcess {
  const sandbox = runGateway(directory, variables)
  sandboxes.push(sandbox)
  return sandbox
}

async function stop(gateway: GatewayProcess): Promise<void> {
  gateway.child.kill('SIGTERM')
  expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
}

const shown = async (url: string, key: string): Promise<string[]> =>
  (await recordsOf({ url }, key)).map(({ request_id: id }) => id ?? '').sort()

async function chatInSandbox(url: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `sandbox-${index}`)
  for (const id of ids) {
    const headers = { authorization: `Bearer ${SANDBOX_KEY}`, 'x-request-id': id }
    expect((await sendRaw(url, { path: CHAT_PATH, body: chatText('Hello'), headers })).status).toBe(200)
  }
  return ids
}

describe('What was used in the sandbox', () => {
  it('is no part of what a gateway shows that is configured in the same folder, and is there in the next sandbox', async () => {
    const data = join(directory, 'data')
    await fillWithStores(data, join(data, 'sandbox'))
    const sandbox = startSandbox()
    const ids = await chatInSandbox(await sandbox.listening(), 5)
    await stop(sandbox)
    expect(sandbox.output()).toContain('opening the store')

    const configured = await lab.start({ ...SAME_ID, channels: [p1Channel('first', lab.p1)] }, directory)
    const url = await configured.listening()
    const own = await chats(url, 3, 'configured')
    expect(await shown(url, TEST_KEY)).toEqual(own)
    await stop(configured)
    expect(await readdir(data)).not.toContain('unstored-usage')

    await rm(join(directory, 'gateway.yaml'))
    expect(await shown(await startSandbox().listening(), SANDBOX_KEY)).toEqual(ids)
  })
})

describe('A sandbox that is started with TRANSLATE=on', () => {
  it('answers clients of each dialect with models of the others', async () => {
    await fillWithStores(join(directory, 'data', 'sandbox'))
    const url = await startSandbox({ TRANSLATE: 'on' }).listening()
    const headers = { authorization: `Bearer ${SANDBOX_KEY}` }
    const messages = [{ role: 'user', content: 'Hello' }]
    const translated: readonly [dialects: string, path: string, fields: object][] = [
      ['chat over messages', '/v1/chat/completions', { model: 'claude-sonnet-4-5', messages }],
      ['messages over chat', '/v1/messages', { model: 'gpt-4o-mini', max_tokens: 100, messages }],
      ['responses over messages', '/v1/responses', { model: 'claude-sonnet-4-5', input: 'Hello', store: false }],
      ['responses over chat', '/v1/responses', { model: OPEN_MODEL_ROW.id, input: 'Hello', store: false }],
    ]
    for (const [dialects, path, fields] of translated) {
      const {
        status,
        headers: shown,
        text: answer,
      } = await sendRaw(url, { path, body: JSON.stringify(fields), headers })
      expect([status, shown['x-gateway-dialect'], answer]).toEqual([
        200,
        dialects,
        expect.stringContaining('You said: Hello'),
      ])
    }
  })
})

describe('A receiver on this machine', () => {
  interface Received {
    readonly headers: Record<string, string>
    readonly body: string
  }

  /** What comes to a server on loopback, and the first callback among it. */
  async function receiver() {
    const paths: string[] = []
    let received!: (callback: Received) => void
    const first = new Promise<Received>((resolve) => {
      received = resolve
    })
    const server = await listenOnLoopback(
      createServer((request, response) => {
        paths.push(request.url ?? '')
        void text(request).then((body) => {
          received({ headers: request.headers as Record<string, string>, body })
          response.end()
        })
      }),
    )
    return { first, paths, server, url: `http://127.0.0.1:${server.port}/own` }
  }

  it('gets the callbacks of the sandbox, which a library verifies with the secret that is printed', async () => {
    await fillWithStores(join(directory, 'data', 'sandbox'))
    const sandbox = startSandbox()
    const url = await sandbox.listening()
    const own = await receiver()
    try {
      await new VideoCaller({ url }, SANDBOX_KEY).created({ callback_url: own.url })
      const { headers, body } = await own.first
      const [, secret = ''] = /callback secret +(whsec_\S+)/.exec(sandbox.output()) ?? []
      expect(new Webhook(secret).verify(body, headers)).toMatchObject({ task_status: 'processing' })
    } finally {
      await own.server.close()
    }
  })

  it('gets nothing of a sandbox that others can call, and documents are not fetched from it', async () => {
    await fillWithStores(join(directory, 'data', 'sandbox'))
    const url = await startSandbox({ HOST: '0.0.0.0', FETCH_DOCUMENTS: 'true' }).listening()
    const own = await receiver()
    try {
      const refused = await new VideoCaller({ url }, SANDBOX_KEY).create({ callback_url: own.url })
      expect([refused.status, refused.body.message]).toEqual([400, expect.stringMatching(/ssrf\.allow/)])
      const local = await startSandbox({ FETCH_DOCUMENTS: 'true', GATEWAY_DATA: join(directory, 'other') }).listening()
      const headers = { authorization: `Bearer ${SANDBOX_KEY}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ url: own.url })
      const document = await sendRaw(local, { path: '/v1/document/parse', body, headers })
      expect([document.status, document.text]).toEqual([400, expect.stringContaining("Invalid 'url'")])
      expect(own.paths).toEqual([])
    } finally {
      await own.server.close()
    }
  })
})

describe('The store of the sandbox', () => {
  it('is made for the first task, and opened at the start once it is there', async () => {
    const sandbox = startSandbox()
    const url = await sandbox.listening()
    await chatInSandbox(url, 2)
    expect(sandbox.output()).not.toContain('opening the store')
    expect(existsSync(join(directory, 'data', 'sandbox', 'postgres'))).toBe(false)
    const task = await new VideoCaller({ url }, SANDBOX_KEY).created()
    sandbox.child.kill('SIGKILL')
    await sandbox.exited

    const next = startSandbox()
    const nextUrl = await next.listening()
    await next.said(/opening the store/)
    expect(await new VideoCaller({ url: nextUrl }, SANDBOX_KEY).listed()).toEqual([task])
  })

  it('is refused to a second sandbox in its folder, which serves all that needs none', async () => {
    await fillWithStores(join(directory, 'data', 'sandbox'))
    const first = startSandbox()
    await first.listening()
    const second = startSandbox()
    const url = await second.listening()
    await second.said(/The store in data\/sandbox is in use by process/)
    await chatInSandbox(url, 1)
    expect((await new VideoCaller({ url }, SANDBOX_KEY).create()).status).toBe(503)
  })
})

describe('Tasks of the sandbox', () => {
  it('are unknown to a gateway that is configured beside it, with a store of its own, and known to the next sandbox', async () => {
    const data = join(directory, 'elsewhere')
    const variables = { GATEWAY_DATA: data }
    await fillWithStores(data, join(data, 'sandbox'))
    const sandbox = startSandbox(variables)
    const task = await new VideoCaller({ url: await sandbox.listening() }, SANDBOX_KEY).created()

    // While the sandbox goes on: each has its own store open.
    const configured = await lab.start(SAME_ID, directory, variables)
    const caller = new VideoCaller({ url: await configured.listening() })
    expect(await caller.listed()).toEqual([])
    expect((await caller.read(task)).status).toBe(404)
    await stop(sandbox)
    await stop(configured)

    await rm(join(directory, 'gateway.yaml'))
    const next = new VideoCaller({ url: await startSandbox(variables).listening() }, SANDBOX_KEY)
    expect(await next.listed()).toEqual([task])
    expect(await readdir(directory)).toEqual(['elsewhere'])
  })

  it('fail, and nothing else, where its folder cannot be made, which says which one it is', async () => {
    await writeFile(join(directory, 'data'), 'a file where the folder should be')
    const sandbox = startSandbox()
    const url = await sandbox.listening()
    await chatInSandbox(url, 1)
    const created = await new VideoCaller({ url }, SANDBOX_KEY).create()
    expect(created.status).toBe(503)
    await sandbox.said(/The store in data\/sandbox cannot be written to/)
  })
})
