import { describe, expect, it } from '@jest/globals'
import { parseConfig } from './config-loader.js'
import { configWarnings } from './config-warnings.js'

const SECRET = `whsec_${Buffer.alloc(32).toString('base64')}`
const channel = (credentials: string): string =>
  `{id: a, provider: p2, baseUrl: "http://h", credentials: ${credentials}}`

describe('configWarnings', () => {
  it('names what a bare configuration lacks', () => {
    expect(configWarnings(parseConfig('{}', {}))).toEqual([
      expect.stringContaining('callbacks.secret'),
      expect.stringContaining('channels'),
      expect.stringContaining('auth.keys'),
    ])
  })

  it('is silent when signed callbacks, a key and a channel are there', () => {
    const yaml = `{callbacks: {secret: "${SECRET}"}, auth: {keys: [{id: a, key: k}]}, channels: [${channel('own')}]}`
    expect(configWarnings(parseConfig(yaml, {}))).toEqual([])
  })

  it('needs no key when a channel passes its callers on', () => {
    const yaml = `{callbacks: {secret: "${SECRET}"}, channels: [${channel('caller')}]}`
    expect(configWarnings(parseConfig(yaml, {}))).toEqual([])
  })
})
