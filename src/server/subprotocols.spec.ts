import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../test/support/cpu-time.js'
import { offeredSubprotocols } from './subprotocols.js'

const offered = (header: string) => offeredSubprotocols({ headers: { 'sec-websocket-protocol': header } })

describe('Subprotocols', () => {
  it('are those of the header in its order, without the blanks around them', () => {
    expect(offered('realtime, \t b ,c\t')).toEqual(['realtime', 'b', 'c'])
    expect(offeredSubprotocols({ headers: {} })).toEqual([])
  })

  it.each(['', 'a,', 'a b', 'a,a', '\u00a0a', 'a\u00a0', 'a\v', 'a=b'])('are not what %j says', (header) => {
    expect(() => offered(header)).toThrow('different tokens')
  })

  it('are told at once, however many blanks stand in the header', () => {
    const startedAtMs = cpuMs()
    expect(() => offered(`a${' '.repeat(65_536)}b`)).toThrow('different tokens')
    expect(cpuMs() - startedAtMs).toBeLessThan(100)
  })
})
