import { describe, expect, it } from '@jest/globals'
import { SANDBOX_CALLBACK_SECRET, SANDBOX_IMAGE_TASK, startSandbox } from '@multi-model-gateway/sandbox/sandbox.js'
import type { GatewayConfig } from '../../src/config/settings.js'
import { parseConfig } from '../support/config.js'

interface ConfiguredSandbox {
  readonly config: GatewayConfig
  readonly banner: (address: string) => string
}

/** Configured as `serve.ts` does it: exemptions from the SSRF guard are no operator's here. */
async function withSandbox(run: (sandbox: ConfiguredSandbox) => Promise<void> | void, variables = {}): Promise<void> {
  const { configText, banner, close } = await startSandbox('127.0.0.1')
  try {
    await run({ config: parseConfig(configText, { ...variables, NODE_ENV: undefined }), banner })
  } finally {
    await close()
  }
}

/** An address the banner shows, by the words before it. */
const shown = (banner: string, words: string): string => new RegExp(`${words} +(\\S+)`).exec(banner)?.[1] ?? ''

describe('The sandbox', () => {
  it.each(['production', 'test'])(
    'exempts its own servers from the guard, and nothing else, in %s',
    async (NODE_ENV) => {
      await withSandbox(
        ({ config, banner }) => {
          const hosts = config.channels.map(({ baseUrl }) => new URL(baseUrl).host)
          expect(hosts.length).toBeGreaterThanOrEqual(7)
          const receiver = new URL(shown(banner('http://gateway'), 'callback_url')).host
          expect(new Set(config.ssrf.allow)).toEqual(new Set([...hosts, receiver]))
        },
        { NODE_ENV },
      )
    },
  )

  it('still takes what the environment says', async () => {
    await withSandbox(
      ({ config }) => {
        expect(config.server.port).toBe(8099)
      },
      { NODE_ENV: 'production', PORT: '8099' },
    )
  })

  it('has a channel for each kind of task, signs callbacks, and gives upstreams no address to call', async () => {
    await withSandbox(({ config }) => {
      const ids = config.channels.map(({ id }) => id)
      expect(ids).toEqual(expect.arrayContaining(['sandbox-vidgen', 'sandbox-imggen']))
      expect(config.callbacks.secret).toBe(SANDBOX_CALLBACK_SECRET)
      expect(config.server.publicUrl).toBeUndefined()
    })
  })

  it('shows a place for callbacks that takes them and tells what came', async () => {
    await withSandbox(async ({ banner }) => {
      const text = banner('http://gateway')
      await fetch(shown(text, 'callback_url'), { method: 'POST', body: '{"task_id":"1"}' })
      expect(await (await fetch(shown(text, 'what came there'))).json()).toMatchObject([
        { verified: false, body: { task_id: '1' } },
      ])
    })
  })

  it('shows an image task that has ended, and how to make another', async () => {
    await withSandbox(async ({ banner }) => {
      const text = banner('http://gateway')
      expect(shown(text, 'image task')).toBe(SANDBOX_IMAGE_TASK)
      const submit = /POST (\S+) with the header (mj-api-secret): (\S+)/.exec(text)
      const [, url = '', name = '', secret = ''] = submit ?? []
      const headers = { [name]: secret }
      const task = await fetch(new URL(`/mj/task/${SANDBOX_IMAGE_TASK}/fetch`, url), { headers })
      expect(await task.json()).toMatchObject({ id: SANDBOX_IMAGE_TASK, status: 'SUCCESS' })
      const made = await fetch(url, { method: 'POST', headers, body: '{"prompt":"a blue kite"}' })
      expect(await made.json()).toMatchObject({ code: 1 })
    })
  })
})
