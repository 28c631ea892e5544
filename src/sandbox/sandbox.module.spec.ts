import { describe, expect, it } from '@jest/globals'
import { startSandbox } from './sandbox.module.js'

describe('The sandbox', () => {
  it.each(['production', 'test'])(
    'exempts its own simulators from the guard, and nothing else, in %s',
    async (NODE_ENV) => {
      const { config, close } = await startSandbox({ NODE_ENV })
      const hosts = config.channels.map(({ baseUrl }) => new URL(baseUrl).host)
      expect(hosts.length).toBeGreaterThanOrEqual(3)
      expect(new Set(config.ssrf.allow)).toEqual(new Set(hosts))
      await close()
    },
  )

  it('still takes what the environment says', async () => {
    const { config, close } = await startSandbox({ NODE_ENV: 'production', PORT: '8099' })
    expect(config.server.port).toBe(8099)
    await close()
  })
})
