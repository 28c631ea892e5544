import { beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { GuardedClient } from '../upstream/safe-fetch.js'
import type { ResolveHost } from '../upstream/ssrf-guard.js'
import { CallbackAddress } from './callback-address.js'

const REFUSED = { kind: 'invalid_request', details: { code: 'url_not_allowed', param: 'callback_url' } }

let resolve: ResolveHost
let address: CallbackAddress

beforeEach(() => {
  resolve = () => Promise.resolve([{ address: '8.8.8.8', family: 4 }])
  const config = parseConfig(JSON.stringify({ ssrf: { allow: ['127.0.0.1:9000', 'hooks.internal:9000'] } }), {})
  address = new CallbackAddress(new GuardedClient(new ConfigStore(config), (host) => resolve(host)))
})

/** A URL of a public host with so many characters. */
const ofLength = (length: number): string => 'https://hooks.test/'.padEnd(length, 'a')

describe('A callback_url', () => {
  it.each([
    'https://hooks.test/video?token=1',
    'http://hooks.test:8080/',
    'https://8.8.8.8/',
    'http://127.0.0.1:9000/hook',
    'http://hooks.internal:9000/',
    ofLength(2048),
  ])('may be %s', async (url) => {
    await expect(address.assertAllowed(url)).resolves.toBeUndefined()
  })

  it.each([
    ofLength(2049),
    '',
    'hooks.test',
    '/hook',
    'ftp://hooks.test/',
    'javascript:alert(1)',
    'https://user@hooks.test/',
    'https://:password@hooks.test/',
    'http://127.0.0.1/',
    'http://2130706433:9001/',
    'http://[::ffff:127.0.0.1]:9000/',
    'http://169.254.169.254/latest/meta-data/',
    'https://hooks.test:6379/',
    'https://hooks.test/\u0000',
    '\u0000https://hooks.test/',
    'https://hooks.test/\r\nhook',
  ])('may not be %s', async (url) => {
    await expect(address.assertAllowed(url)).rejects.toMatchObject(REFUSED)
  })

  it('may not name a host with a private address, even beside public ones', async () => {
    resolve = () =>
      Promise.resolve([
        { address: '8.8.8.8', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ])
    await expect(address.assertAllowed('https://hooks.test/')).rejects.toMatchObject(REFUSED)
  })

  it('may name a host that does not resolve yet', async () => {
    resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    await expect(address.assertAllowed('https://new.test/')).resolves.toBeUndefined()
  })

  it('is never repeated in the refusal', async () => {
    const url = 'http://canary.test:22/canary?canary'
    const refusal: unknown = await address.assertAllowed(url).catch((error: unknown) => error)
    expect((refusal as Error).message).not.toContain('canary')
    await expect(address.assertAllowed(`${ofLength(2049)}canary`)).rejects.not.toThrow('canary')
  })
})
