import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { adminCaller, ADMIN_KEY } from '../support/admin-caller.js'
import { type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { CONFIGURATION, directoryWithStore, keys } from '../support/keys-command.js'
import { STORE_START_MS } from '../support/stores.js'

let directory: string
let gateway: GatewayProcess | undefined

const configure = (text: string): Promise<void> => writeFile(join(directory, 'gateway.yaml'), text)

beforeAll(async () => {
  directory = await directoryWithStore()
}, STORE_START_MS)

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
  }, 60_000)

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
  }, 60_000)
})
