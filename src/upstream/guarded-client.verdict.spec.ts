import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { GuardedClient } from './safe-fetch.js'
import type { ResolveHost } from './ssrf-guard.js'

/** As many lookups as may hang before the next one is refused. */
const MOST_LOOKUPS = 128

let resolve: ResolveHost
let client: GuardedClient
beforeEach(() => {
  client = new GuardedClient(new ConfigStore(parseConfig('{}', {})), (host) => resolve(host))
})
afterEach(() => client.onApplicationShutdown())

const judge = (url: string, resolveMs = 20_000): Promise<void> => client.assertAllowedElsewhere(url, 'url', resolveMs)

const failing = (code: string) => (): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }))
const never = (): Promise<never> => new Promise(() => undefined)

describe('A URL that is judged here and fetched by somebody else', () => {
  it('passes when its addresses are public, or when there is no such name', async () => {
    await judge('https://8.8.8.8/')
    resolve = () => Promise.resolve([{ address: '8.8.8.8', family: 4 }])
    await judge('https://public.test/')
    for (const code of ['ENOTFOUND', 'ENODATA']) {
      resolve = failing(code)
      await judge('https://unknown.test/')
    }
  })

  it('is refused as one that is fetched here', async () => {
    resolve = () => Promise.resolve([{ address: '10.0.0.5', family: 4 }])
    const refusal = { kind: 'invalid_request', details: { code: 'url_not_allowed', param: 'url' } }
    for (const url of ['http://127.0.0.1/', 'http://private.test/', 'http://8.8.8.8:22/', 'ws://8.8.8.8/'])
      await expect(judge(url)).rejects.toMatchObject(refusal)
  })

  it('does not pass unjudged when its name server is slow: a private address may come a moment later', async () => {
    resolve = never
    await expect(judge('https://slow.test/', 10)).rejects.toMatchObject({
      kind: 'upstream_timeout',
      message: "The host of 'url' could not be looked up in time.",
    })
  })

  it('does not pass unjudged when its name server has no answer, or so many names hang that it is not asked', async () => {
    const unjudged = { kind: 'upstream_failed', message: "The host of 'url' could not be looked up." }
    for (const code of ['EAI_AGAIN', 'EAI_FAIL', 'ESERVFAIL']) {
      resolve = failing(code)
      await expect(judge('https://broken.test/')).rejects.toMatchObject(unjudged)
    }
    resolve = never
    const hanging = Array.from({ length: MOST_LOOKUPS }, () => judge('https://slow.test/', 1000))
    await expect(judge('https://private.test/')).rejects.toMatchObject(unjudged)
    for (const { status } of await Promise.allSettled(hanging)) expect(status).toBe('rejected')
  })
})
