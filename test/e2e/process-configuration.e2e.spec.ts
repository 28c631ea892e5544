import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, errorOf, sendRaw } from '../support/gateway.js'
import { dataDirectory, testStore } from '../support/stores.js'
import { MULTIPART, TRANSCRIPTIONS } from '../support/upload-server.js'

describe('process configuration', () => {
  const running: GatewayProcess[] = []
  afterEach(async () => {
    await Promise.all(running.splice(0).map((gateway) => gateway.close()))
  })

  const configured = async (
    text: string,
    variables: Readonly<Record<string, string>> = {},
  ): Promise<GatewayProcess> => {
    const directory = await emptyDirectory()
    await writeFile(join(directory, 'gateway.yaml'), text)
    const gateway = runGateway(directory, variables)
    running.push(gateway)
    return gateway
  }

  const bare = async (variables: Readonly<Record<string, string>>): Promise<GatewayProcess> => {
    const gateway = runGateway(await emptyDirectory(), variables)
    running.push(gateway)
    return gateway
  }

  const withKey = (key: string, baseUrl: string): string =>
    JSON.stringify({
      auth: { keys: [{ id: 'team', key }] },
      channels: [{ id: 'only', provider: 'p1', baseUrl, credentials: 'upstream-canary-key' }],
    })

  describe('a configuration with faults', () => {
    it('stops the gateway with code 1 and the name of every fault, and no value', async () => {
      const gateway = await configured(
        [
          'server: { hots: host-canary, metricsPort: port-canary }',
          'limits: { jsonBodyBytes: -5 }',
          'auth: { keys: [{ id: team-a, key: "${NOT_SET_CANARY}" }, { id: team-a, key: key-canary-value }] }',
          'channels:',
          '  - { id: one, provider: p9-canary, baseUrl: "ftp://user:secret-canary@host", credentials: credential-canary }',
          '  - { provider: p1 }',
          'surprise: canary-surprise',
        ].join('\n'),
        { LOG_LEVEL: 'loud-canary', METRICS_PORT: '' },
      )
      const { code, output, errors } = await gateway.exited
      expect(code).toBe(1)
      for (const name of [
        'unknown key "hots"',
        'server.metricsPort',
        'limits.jsonBodyBytes',
        'NOT_SET_CANARY',
        'channels[0].provider',
        'channels[0].baseUrl',
        'channels[1].id',
        'channels[1].baseUrl',
        'unknown key "surprise"',
        'LOG_LEVEL',
      ]) {
        expect(errors).toContain(name)
      }
      expect(errors).toMatch(/has \d+ faults/)
      expect(output + errors).not.toMatch(
        /port-canary|host-canary|key-canary|p9-canary|secret-canary|credential-canary|canary-surprise|loud-canary/,
      )
      expect(errors).not.toMatch(/\n\s+at /)
    })

    it.each([
      ['broken YAML', 'auth: [unclosed-canary'],
      ['a list', '- canary'],
      ['nothing', ''],
    ])('as %s stops it, too', async (_name, text) => {
      const { code, errors } = await (await configured(text)).exited
      expect(code).toBe(1)
      expect(errors).toMatch(/^The configuration has a fault:/)
      expect(errors).not.toContain('canary')
    })

    it('in the environment stops the sandbox as well', async () => {
      const { code, errors } = await (await bare({ PORT: 'eighty-canary' })).exited
      expect(code).toBe(1)
      expect(errors).toContain('PORT')
      expect(errors).not.toContain('canary')
    })

    it('in production a missing file that is named is one', async () => {
      const { code, errors } = await (
        await bare({ NODE_ENV: 'production', GATEWAY_CONFIG: '/nowhere/canary.yaml' })
      ).exited
      expect(code).toBe(1)
      expect(errors).toContain('GATEWAY_CONFIG')
      expect(errors).not.toContain('canary')
    })
  })

  describe('a port that is in use', () => {
    it('is said in one sentence, with code 1', async () => {
      const other = createServer()
      other.listen(0, '127.0.0.1')
      await once(other, 'listening')
      try {
        const { code, errors } = await (await bare({ PORT: String((other.address() as AddressInfo).port) })).exited
        expect(code).toBe(1)
        expect(errors.trim().split('\n')).toHaveLength(1)
        expect(errors).toMatch(/port.*in use.*PORT=/i)
      } finally {
        other.close()
      }
    })
  })

  describe('a configured gateway', () => {
    it('prints one line with its address, and marks no answer as one of a sandbox', async () => {
      const gateway = await configured(withKey('first-key', 'http://127.0.0.1:9'))
      const url = await gateway.listening()
      expect(gateway.output()).toContain(`Multi-Model Gateway listens at ${url}\n`)
      expect(gateway.output()).not.toMatch(/sandbox/i)
      const answer = await sendRaw(url, { method: 'GET', path: '/health/ready' })
      expect(answer.status).toBe(200)
      expect(answer.headers).not.toHaveProperty('x-gateway-sandbox')
    })

    it('reloads its keys at SIGHUP, and keeps the old ones when the new file is bad', async () => {
      const simulator = await startP1Simulator({ apiKey: 'upstream-canary-key' })
      try {
        const gateway = await configured(withKey('first-key', simulator.url))
        const url = await gateway.listening()
        const statusFor = async (key: string): Promise<number> => {
          const headers = { authorization: `Bearer ${key}` }
          return (await sendRaw(url, { path: CHAT_PATH, headers, body: chatText('Hello') })).status
        }
        expect([await statusFor('first-key'), await statusFor('second-key')]).toEqual([200, 401])

        await writeFile(join(gateway.directory, 'gateway.yaml'), withKey('second-key', simulator.url))
        gateway.child.kill('SIGHUP')
        await gateway.said(/"configuration reloaded"/)
        expect([await statusFor('first-key'), await statusFor('second-key')]).toEqual([401, 200])

        await writeFile(join(gateway.directory, 'gateway.yaml'), withKey('third-canary-key', 'ftp://bad'))
        gateway.child.kill('SIGHUP')
        const [line] = await gateway.said(/configuration not reloaded[^\n]*/)
        expect(line).toContain('channels[0].baseUrl')
        expect([await statusFor('second-key'), await statusFor('third-canary-key')]).toEqual([200, 401])
        expect(gateway.output()).not.toMatch(/first-key|second-key|canary/)
      } finally {
        await simulator.close()
      }
    })

    it('lets a running stream finish on the configuration it began with', async () => {
      const simulator = await startP1Simulator({ apiKey: 'upstream-canary-key', paceMs: 20 })
      try {
        const gateway = await configured(withKey('first-key', simulator.url))
        const url = await gateway.listening()
        const headers = { authorization: 'Bearer first-key' }
        const begun = simulator.nextRequest()
        const answer = sendRaw(url, { path: CHAT_PATH, headers, body: chatText('#chunks=40', { stream: true }) })
        await begun
        await writeFile(join(gateway.directory, 'gateway.yaml'), withKey('second-key', 'http://127.0.0.1:9'))
        gateway.child.kill('SIGHUP')
        await gateway.said(/"configuration reloaded"/)
        expect((await answer).text).toContain('data: [DONE]')
      } finally {
        await simulator.close()
      }
    })
  })
})

describe('process refusals', () => {
  const MEGABYTE = 1_000_000
  const ROUNDS = 10

  let gateway: GatewayProcess
  let url: string

  // Two processes: in one alone, the client always reads the answer before it notices that its connection is gone.
  beforeAll(async () => {
    gateway = runGateway(await emptyDirectory())
    url = await gateway.listening()
  })
  afterAll(() => gateway.close())

  const JSON_TYPE = 'application/json'
  const KEY = 'Bearer sandbox-demo-key'

  describe.each(['close', 'keep-alive'])('a client (connection: %s) who is still sending', (connection) => {
    it.each([
      ['an upload over its limit', TRANSCRIPTIONS, MULTIPART['content-type'], KEY, 40, 413, 'payload_too_large'],
      ['an upload without a key', TRANSCRIPTIONS, MULTIPART['content-type'], undefined, 8, 401, 'invalid_api_key'],
      ['an upload of another kind', TRANSCRIPTIONS, 'audio/wav', KEY, 8, 415, 'unsupported_media_type'],
      ['JSON over its limit', CHAT_PATH, JSON_TYPE, KEY, 11, 413, 'payload_too_large'],
      ['to an unknown path', '/v1/nowhere', JSON_TYPE, KEY, 8, 404, 'not_found'],
    ])('%s reads why it is refused', async (_name, path, type, authorization, megabytes, status, code) => {
      const body = Buffer.alloc(megabytes * MEGABYTE)
      const headers = { connection, authorization, 'content-type': type }
      for (let round = 0; round < ROUNDS; round++) {
        const answer = await sendRaw(url, { path, body, headers })
        expect([answer.status, errorOf(answer).code, answer.complete]).toEqual([status, code, true])
      }
    })
  })
})

describe('process migrate', () => {
  const MIGRATE = fileURLToPath(new URL('../../dist/migrate.js', import.meta.url))

  interface Run {
    readonly code: number | string | null | undefined
    readonly output: string
    readonly errors: string
  }

  /** `npm run migrate`, after its build, in a directory without a configuration. */
  const migrate = (directory: string, variables: Readonly<Record<string, string>> = {}): Promise<Run> =>
    new Promise((resolve) => {
      const env = { GATEWAY_DATA: directory, ...variables }
      execFile(process.execPath, [MIGRATE], { cwd: directory, env }, (error, output, errors) => {
        resolve({ code: error === null ? 0 : error.code, output, errors })
      })
    })

  let directory: string

  beforeAll(async () => {
    directory = await dataDirectory()
  })

  afterAll(() => rm(directory, { recursive: true }))

  describe('npm run migrate', () => {
    it('brings the store up to date, as often as it is run, and ends', async () => {
      for (let time = 0; time < 2; time += 1) {
        const { code, output, errors } = await migrate(directory)
        expect({ code, errors }).toEqual({ code: 0, errors: '' })
        expect(output).toMatch(/The store is up to date\.\n$/)
      }
    })

    it('fails with what to do about it while a gateway has the store open', async () => {
      const store = testStore({ directory })
      await store.database.open()
      const { code, errors } = await migrate(directory)
      expect(code).toBe(1)
      expect(errors).toMatch(new RegExp(`is in use by process ${process.pid}.*DATABASE_URL\\.\n$`))
      await store.close()
    })

    it('fails without a word of the password when PostgreSQL cannot be reached', async () => {
      const url = 'postgres://gateway:canary@127.0.0.1:1/gateway'
      const { code, output, errors } = await migrate(directory, { DATABASE_URL: url })
      expect(code).toBe(1)
      expect(errors).toBe('The database cannot be reached at the moment.\n')
      expect(output + errors).not.toContain('canary')
    })
  })
})
