import { rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { ADMIN_KEY, adminCaller, CONFIGURATION, keys } from '../support/admin-lab.js'
import { type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { sendRaw } from '../support/gateway.js'
import { directoryWithStore } from '../support/stores.js'

const WRONG_ID =
  "Invalid 'id': must be 1 to 64 letters, digits, dots, underscores or hyphens, and neither - nor caller, which mean somebody else.\n"

const KEY = /^sk-gw-[0-9A-Za-z]{43}$/

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

describe('npm run keys on the store', () => {
  it('issues a key that the gateway knows when it starts, and ends it for good', async () => {
    await configure(CONFIGURATION())
    const words = ['create', '--id', 'team-b', '--models', 'gpt-*', '--concurrency', '3', '--expires', '90d', '--quiet']
    const created = await keys(directory, words)
    expect({ ...created, output: created.output.trim() }).toEqual({
      code: 0,
      errors: '',
      output: expect.stringMatching(KEY),
    })
    const key = created.output.trim()

    gateway = runGateway(directory)
    const url = await gateway.listening()
    const models = () =>
      sendRaw(url, { method: 'GET', path: '/v1/models', headers: { authorization: `Bearer ${key}` } })
    expect((await models()).status).toBe(200)
    const { json } = await adminCaller(url).call('GET', '/audit')
    expect(json['data']).toContainEqual(
      expect.objectContaining({ actor: 'cli', action: 'keys.create', target: 'team-b' }),
    )

    const inUse = await keys(directory, ['revoke', 'team-b'])
    expect(inUse).toMatchObject({ code: 1, output: '' })
    expect(inUse.errors).toMatch(
      /is in use by process \d+.*DATABASE_URL\.\n.*GATEWAY_ADMIN_KEY=… npm run keys -- <command> --url/s,
    )
    const variables = { GATEWAY_ADMIN_KEY: ADMIN_KEY }
    const revoked = await keys(directory, ['revoke', 'team-b', '--url', url, '--json'], variables)
    expect(revoked).toMatchObject({ code: 0, errors: '' })
    expect(JSON.parse(revoked.output)).toMatchObject({ id: 'team-b', state: 'revoked', limits: { concurrency: 3 } })
    expect((await models()).status).toBe(401)
    expect(gateway.output()).not.toContain(key)
    expect(gateway.output()).not.toContain(ADMIN_KEY)

    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).toBe(0)
    const again = await keys(directory, ['update', 'team-b', '--note', 'x'])
    expect(again).toMatchObject({ code: 1, errors: "The key 'team-b' is revoked for good. Issue another one.\n" })
  })

  it('changes one limit and leaves the others', async () => {
    await configure(CONFIGURATION())
    await keys(directory, [
      'create',
      '--id',
      'limited',
      '--concurrency',
      '3',
      '--tokens-per-minute',
      '9',
      '--note',
      'n',
    ])
    const update = [
      'update',
      'limited',
      '--concurrency',
      'none',
      '--requests-per-minute',
      '5',
      '--note',
      'none',
      '--json',
    ]
    const updated = await keys(directory, update)
    expect(JSON.parse(updated.output)).toMatchObject({
      limits: { tokensPerMinute: 9, requestsPerMinute: 5 },
      note: null,
    })
    const bare = await keys(directory, [
      'update',
      'limited',
      '--tokens-per-minute',
      'none',
      '--requests-per-minute',
      'none',
    ])
    expect(bare.output).toMatch(
      /^ID +STATE +KEY +MODELS +LIMITS +EXPIRES +NOTE\nlimited +active +sk-gw-\S{4}… +\* +- +-\n$/,
    )
    expect((await keys(directory, ['list'])).output).toContain('limited')
    expect((await keys(directory, ['list', '--quiet'])).output).toBe('')
  })

  it.each([
    [['create', '--id', 'a b'], 1, WRONG_ID],
    [['create', '--expires', '2020-01-01'], 2, '--expires must be in the future.\nUsage: npm run keys -- --help\n'],
    [['show', 'nobody'], 1, 'There is no such key.\n'],
    [['list', '--url', 'http://127.0.0.1:1'], 1, '--url needs the admin key in GATEWAY_ADMIN_KEY.\n'],
    [['create', '--what'], 2, /^Unknown option '--what'.*Usage: npm run keys/s],
    [[], 2, /^Which command\?\n\nUsage.*Exit codes/s],
    [['expire', 'team-b'], 2, /^There is no such command\.\n\nUsage.*Exit codes/s],
  ])(
    'fails with words: %j',
    async (words, code, errors) => {
      await configure(CONFIGURATION())
      const run = await keys(directory, words)
      expect(run).toMatchObject({ code, output: '' })
      expect(run.errors).toEqual(typeof errors === 'string' ? errors : expect.stringMatching(errors))
    },
    30_000,
  )

  it('opens no other store for a configuration file that is not there', async () => {
    const run = await keys(directory, ['create'], { GATEWAY_CONFIG: 'mistyped.yaml' })
    expect(run).toEqual({ code: 1, output: '', errors: 'The file that GATEWAY_CONFIG names does not exist.\n' })
  })

  it('explains itself', async () => {
    for (const words of [['help'], ['--help'], ['create', '--help']]) {
      const run = await keys(directory, words)
      expect(run).toMatchObject({
        code: 0,
        errors: '',
        output: expect.stringMatching(/^Usage: npm run keys -- <command>/),
      })
    }
  })

  it('warns where the gateway would not read its keys', async () => {
    await configure('channels: []')
    const run = await keys(directory, ['list'])
    expect(run).toMatchObject({
      code: 0,
      errors: expect.stringMatching(/^Warning: neither auth\.adminKey nor database\.url/),
    })
  })

  it('fails without the admin key in its message if it is wrong, or the port is closed', async () => {
    const variables = { GATEWAY_ADMIN_KEY: 'wrong-canary' }
    const unreachable = await keys(directory, ['list', '--url', 'http://127.0.0.1:1'], variables)
    expect(unreachable).toEqual({ code: 1, output: '', errors: 'The gateway that --url names cannot be reached.\n' })
    await configure(CONFIGURATION())
    gateway = runGateway(directory)
    const wrong = await keys(directory, ['list', '--url', await gateway.listening()], variables)
    expect(wrong).toEqual({ code: 1, output: '', errors: 'The admin key is not valid.\n' })
    expect(gateway.output()).not.toContain('canary')
  })

  it('hands the admin key to no proxy that the environment names', async () => {
    const seen: string[] = []
    const proxy = createServer((request, response) => {
      seen.push(request.url ?? '')
      response.end('{"data":[],"has_more":false}')
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const variables = { http_proxy: address, HTTP_PROXY: address, all_proxy: address, ALL_PROXY: address }
    const run = await keys(directory, ['list', '--url', 'http://127.0.0.1:1'], {
      GATEWAY_ADMIN_KEY: ADMIN_KEY,
      ...variables,
    })
    proxy.close()
    expect(run).toEqual({ code: 1, output: '', errors: 'The gateway that --url names cannot be reached.\n' })
    expect(seen).toEqual([])
  }, 30_000)

  it('says that there is no admin interface where there is none, whatever is asked', async () => {
    await configure('channels: []')
    gateway = runGateway(directory)
    const url = await gateway.listening()
    for (const words of [['create'], ['list'], ['show', 'a'], ['revoke', 'a']]) {
      const { code, errors } = await keys(directory, [...words, '--url', url], { GATEWAY_ADMIN_KEY: ADMIN_KEY })
      expect([code, errors]).toEqual([1, expect.stringMatching(/^There is no admin interface at the address/)])
    }
  })
})
