import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { startUntouchedServer, type UntouchedServer } from '../support/untouched-server.js'
import { VideoCaller } from '../support/video-caller.js'

let lab: VidgenGateway
let untouched: UntouchedServer

beforeAll(async () => {
  lab = await startVidgenGateway({ exempt: false })
  untouched = await startUntouchedServer()
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(async () => {
  expect(untouched.accepted).toBe(0)
  expect(lab.receiver.received).toEqual([])
  await untouched.close()
  await lab.close()
})

const FORBIDDEN: readonly (readonly [name: string, url: (port: number) => string])[] = [
  ['this machine', (port) => `http://127.0.0.1:${port}/hook`],
  ['this machine by name', (port) => `http://localhost:${port}/hook`],
  ['this machine in decimal', (port) => `http://2130706433:${port}/`],
  ['this machine in octal', (port) => `http://0177.0.0.1:${port}/`],
  ['this machine in hex, shortened', (port) => `http://0x7f.1:${port}/`],
  ['this machine over IPv6', (port) => `http://[::1]:${port}/`],
  ['this machine, IPv4 mapped', (port) => `http://[::ffff:127.0.0.1]:${port}/`],
  ['this machine over NAT64', (port) => `http://[64:ff9b::7f00:1]:${port}/`],
  ['the unspecified address', (port) => `http://0.0.0.0:${port}/`],
  ['a private network', () => 'http://10.0.0.7/hook'],
  ['the metadata service of a cloud', () => 'http://169.254.169.254/latest/meta-data/'],
  ['a shared network', () => 'https://100.64.0.1/'],
  ['a port of another protocol', () => 'http://93.184.216.34:25/'],
  ['another scheme', () => 'ftp://93.184.216.34/hook'],
  ['a file', () => 'file:///etc/passwd'],
  ['a user and password', () => 'https://user:secret-canary@93.184.216.34/'],
  ['no URL at all', () => 'not a url'],
  ['more than 2,048 characters', () => `https://93.184.216.34/${'a'.repeat(2048)}`],
]

describe.each(VIDGEN_KINDS)('the callback address of a %s create', (kind) => {
  it.each(FORBIDDEN)('is refused when it leads to %s, naming the field, before anybody is asked', async (name, url) => {
    const caller = new VideoCaller(lab.gateway, TEST_KEY, kind)
    const own = `address-${kind}-${name.replaceAll(/\W+/g, '-')}`
    const { status, headers, body } = await caller.create({
      callback_url: url(untouched.port),
      external_task_id: own,
    })
    expect([status, body.code, headers['x-should-retry']]).toEqual([400, 1201, 'false'])
    expect(body.message).toMatch(/callback_url|URL/)
    expect(body.message).not.toContain('canary')
    expect(lab.simulator.requests).toEqual([])
    // Nothing is left behind: the id is free.
    await caller.created({ external_task_id: own })
  })
})

describe('the receiver of a test', () => {
  it('is as forbidden as everything else when the operator does not exempt it', async () => {
    const { status, body } = await new VideoCaller(lab.gateway).create({ callback_url: lab.receiver.url() })
    expect([status, body.code]).toEqual([400, 1201])
    expect(body.message).toContain('callback_url')
    expect(lab.simulator.requests).toEqual([])
  })
})

describe('a name that does not resolve at the moment', () => {
  it('is let through: each delivery judges it anew', async () => {
    const created = await new VideoCaller(lab.gateway).create({ callback_url: 'https://hooks.invalid/hook' })
    expect(created.status).toBe(200)
  })
})
