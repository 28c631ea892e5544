import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, openRaw, TEST_KEY } from '../support/gateway.js'
import { FORM_HEAD, formBytes, openUpload } from '../support/slow-uploads.js'
import { wavOf } from '../support/upload-server.js'
import { eventually, promised } from '../support/eventually.js'

let simulator: Simulator
let gateway: GatewayProcess
let url: string

async function start(shutdownGraceMs: number, variables: Readonly<Record<string, string>> = {}): Promise<void> {
  const directory = await emptyDirectory()
  const configuration = {
    auth: { keys: [{ id: 'test', key: TEST_KEY }] },
    channels: [{ id: 'only', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-canary-key' }],
    timeouts: { shutdownGraceMs },
  }
  await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
  gateway = runGateway(directory, variables)
  url = await gateway.listening()
}

beforeEach(async () => {
  simulator = await startP1Simulator({ apiKey: 'upstream-canary-key', paceMs: 20 })
})
afterEach(async () => {
  await gateway.close()
  await simulator.close()
})

const stream = (chunks: number, agent: Agent | false = false): Promise<IncomingMessage> => {
  const body = chatText(`#chunks=${chunks}`, { stream: true })
  if (agent === false) return openRaw(url, { path: CHAT_PATH, body })
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
    request(new URL(CHAT_PATH, url), { method: 'POST', agent, headers }, resolve).on('error', reject).end(body)
  })
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  response.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  response.on('error', () => undefined)
  if (!response.closed) await once(response, 'close').catch(() => undefined)
  return text
}

/** Resolves with the code of the refusal, or `open` when the connection was accepted. */
const connecting = (): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve('open')
    })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code ?? 'unknown')
    })
  })

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  it('lets a running stream finish, refuses new connections, and ends with code 0', async () => {
    await start(30_000)
    const response = await stream(300)
    const text = textOf(response)
    await once(response, 'data')
    gateway.child.kill(signal)
    await gateway.said(/"draining"/)
    // It says so before it closes the port: on a busy machine a connection may be accepted between the two.
    await eventually(async () => (await connecting()) === 'ECONNREFUSED')
    expect(response.complete).toBe(false)
    expect(await text).toContain('data: [DONE]')
    expect(response.complete).toBe(true)
    expect(await gateway.exited).toMatchObject({ code: 0, signal: null, errors: '' })
    expect(gateway.output()).toMatch(/"stopped"/)
  })

  it('ends at once with code 0 when nothing runs, idle connections or not', async () => {
    await start(30_000)
    const agent = new Agent({ keepAlive: true })
    try {
      expect(await textOf(await stream(1, agent))).toContain('[DONE]')
      const startedAtMs = performance.now()
      gateway.child.kill(signal)
      expect(await gateway.exited).toMatchObject({ code: 0 })
      expect(performance.now() - startedAtMs).toBeLessThan(promised(5_000))
    } finally {
      agent.destroy()
    }
  })
})

describe('while it drains, the gateway', () => {
  it('is not ready, and asks clients who kept their connection to find another', async () => {
    await start(30_000)
    const response = await stream(60)
    const text = textOf(response)
    // A connection that has begun a request before the signal is still served.
    const waiting = connect(Number(new URL(url).port), '127.0.0.1')
    let answer = ''
    waiting.on('data', (chunk: Buffer) => {
      answer += chunk.toString()
    })
    await once(waiting, 'connect')
    waiting.write('GET /health/ready HTTP/1.1\r\nhost: gateway\r\n')
    await once(response, 'data')
    gateway.child.kill('SIGTERM')
    await gateway.said(/"draining"/)
    waiting.write('\r\n')
    await once(waiting, 'close')
    // Either the probe was answered as not ready, or its connection was taken for an idle one and closed.
    if (answer !== '') expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*connection: close/i)
    expect(await text).toContain('[DONE]')
    expect((await gateway.exited).code).toBe(0)
  })

  it('ends at once at a second signal', async () => {
    await start(30_000)
    const response = await stream(100_000)
    const text = textOf(response)
    await once(response, 'data')
    gateway.child.kill('SIGTERM')
    await gateway.said(/"draining"/)
    const startedAtMs = performance.now()
    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).not.toBe(0)
    expect(performance.now() - startedAtMs).toBeLessThan(promised(2_000))
    expect(await text).not.toContain('[DONE]')
  })

  it('cuts what is still running after the grace time, visibly, and ends with code 0', async () => {
    await start(300)
    const response = await stream(100_000)
    const text = textOf(response)
    await once(response, 'data')
    const aborted = simulator.nextAbort()
    const startedAtMs = performance.now()
    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).toBe(0)
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(290)
    expect(performance.now() - startedAtMs).toBeLessThan(promised(5_000))
    expect(await text).not.toContain('[DONE]')
    expect(response.complete).toBe(false)
    await aborted
  })

  it('cuts a caller who never sends the rest of an upload', async () => {
    await start(300)
    const upload = await openUpload(url, formBytes(5_000_000))
    await upload.send(FORM_HEAD)
    await upload.send(wavOf(100_000))
    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).toBe(0)
    await upload.closed
  })
})

/** The paths of what a process has open. */
const openFiles = (pid: number | undefined): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${descriptor}`)]
    } catch {
      // Closed meanwhile.
      return []
    }
  })

describe('kill -9', () => {
  it('in the middle of an upload leaves no file behind', async () => {
    const temporary = await emptyDirectory()
    await start(30_000, { TMPDIR: temporary })
    const upload = await openUpload(url, formBytes(20_000_000))
    await upload.send(FORM_HEAD)
    await upload.send(wavOf(8_000_000))
    // A file that has no name any more: the system removes it with its process.
    const isNameless = (path: string): boolean => path.startsWith(temporary) && path.endsWith(' (deleted)')
    await eventually(() => openFiles(gateway.child.pid).some(isNameless))
    gateway.child.kill('SIGKILL')
    expect((await gateway.exited).signal).toBe('SIGKILL')
    await upload.closed
    const left = await readdir(temporary)
    await rm(temporary, { recursive: true })
    expect(left).toEqual([])
  })
})
