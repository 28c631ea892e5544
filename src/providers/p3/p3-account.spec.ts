import { describe, expect, it } from '@jest/globals'
import { GENEROUS_TIMEOUTS, newCall } from '../../../test/support/raw-upstream.js'
import type { CallContext } from '../call-context.js'
import { P3Account } from './p3-account.js'
import type { P3Envelope } from './p3-envelope.js'

const SUCCESS: P3Envelope = { code: 0, message: '', audio: '' }

function accountOf(input = '你好'): { readonly account: P3Account; readonly log: CallContext['call']['log'] } {
  const call = newCall('/v1/audio/speech')
  const context: CallContext = {
    call,
    channelId: 'first',
    target: { poolKey: 'p', origin: 'http://127.0.0.1:1', pathPrefix: '', timeouts: GENEROUS_TIMEOUTS },
    credentials: 'key',
    callersKey: false,
    upstreamModel: 'm',
    options: {},
    deadlineAtMs: 0,
  }
  return { account: new P3Account(input, context), log: call.log }
}

describe('what P3 says about a speech', () => {
  it('costs what P3 counts', () => {
    const { account, log } = accountOf()
    account.read(SUCCESS)
    expect(log.usage).toBeUndefined()
    account.read({ ...SUCCESS, billedCharacters: 7, audioMs: 60_000 })
    expect(log.usage).toEqual({ units: { input_characters: 7 }, estimated: false })
    expect(account.characters()).toBe(7)
    expect(account.usage()).toMatchObject({ output_tokens: 1000, input_characters: 7 })
  })

  it.each([
    ['你好', 4],
    ['你好 ok 😀', 9],
    ['wait<#1.50#>for it', 10],
    ['<#x', 3],
  ])('is counted by the same rules as long as P3 has said nothing (%s)', (input, characters) => {
    const { account, log } = accountOf(input)
    expect(account.characters()).toBe(characters)
    expect(log.usage).toBeUndefined()
  })

  it('is known by its trace, also when it failed', () => {
    const { account, log } = accountOf()
    const failed = { ...SUCCESS, code: 1002, traceId: 'trace-2' }
    account.read({ ...SUCCESS, traceId: 'trace-1' })
    expect(() => {
      account.read(failed)
    }).toThrow('busy')
    expect(log).toMatchObject({ upstreamRequestId: 'trace-2' })
    expect(log.usage).toBeUndefined()
  })

  it.each([
    ['https://files.example.com/a b?c=é', 'https://files.example.com/a%20b?c=%C3%A9'],
    ['http://files.example.com/s.json', 'http://files.example.com/s.json'],
    ['javascript:alert(1)', undefined],
    ['/files/s.json', undefined],
    [`https://files.example.com/${'x'.repeat(4096)}`, undefined],
    [undefined, undefined],
  ])('names the subtitles %s by the header %s', (subtitleFile, header) => {
    const { account } = accountOf()
    account.read({ ...SUCCESS, ...(subtitleFile === undefined ? {} : { subtitleFile }) })
    expect(account.headers['x-subtitle-url']).toBe(header)
  })
})
