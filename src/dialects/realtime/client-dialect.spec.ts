import { describe, expect, it } from '@jest/globals'
import { ClientDialect } from './client-dialect.js'

describe('The dialect of a client', () => {
  it.each([
    ['realtime=v1', [], 'beta'],
    ['Realtime=V1', [], 'beta'],
    ['assistants=v2, realtime=v1', [], 'beta'],
    [undefined, ['realtime', 'openai-insecure-api-key.sk-x', 'openai-beta.realtime-v1'], 'beta'],
    [undefined, ['realtime'], undefined],
    [undefined, [], undefined],
    ['realtime=v2', ['openai-beta.realtime-v2'], undefined],
  ])('after a handshake with header %j and protocols %j is %s', (betaHeader, protocols, dialect) => {
    expect(ClientDialect.ofHandshake({ betaHeader, protocols }).dialect).toBe(dialect)
  })

  it('is decided by the first event that shows one, for good', () => {
    const client = ClientDialect.ofHandshake({ betaHeader: undefined, protocols: ['realtime'] })
    client.learn(undefined)
    expect(client.dialect).toBeUndefined()
    client.learn('ga')
    client.learn('beta')
    expect(client.dialect).toBe('ga')
  })

  it('stays what the handshake said, whatever its events look like', () => {
    const client = ClientDialect.ofHandshake({ betaHeader: 'realtime=v1', protocols: [] })
    client.learn('ga')
    expect(client.dialect).toBe('beta')
  })
})
