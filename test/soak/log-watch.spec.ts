import { describe, expect, it } from '@jest/globals'
import { LogWatch } from './log-watch.js'

const quiet = { code: null, signal: 'SIGKILL', output: '{"level":30,"msg":"request"}\n', errors: '' } as const

const faultsOf = (change: object, signal: 'SIGTERM' | 'SIGKILL' | 'none' = 'SIGKILL'): readonly string[] => {
  const watch = new LogWatch(
    new Map<string, string | RegExp>([
      ['a key', 'canary-key'],
      ['a token', /eyJ\w+\.eyJ/],
    ]),
  )
  watch.read({ ...quiet, ...change }, signal)
  return watch.faults
}

describe('what the soak looks for in logs', () => {
  it('is not found where there is none', () => {
    expect(faultsOf({})).toEqual([])
    expect(faultsOf({ code: 0 }, 'SIGTERM')).toEqual([])
  })

  it('is found on either output: a secret by its text, or by its form', () => {
    expect(faultsOf({ output: 'canary-key' })).toEqual(['a log holds a secret: a key'])
    expect(faultsOf({ errors: 'Bearer eyJab.eyJcd' })).toEqual(['a log holds a secret: a token'])
  })

  it('is found where a gateway failed, ended by itself, or did not drain', () => {
    const line = '{"level":50,"msg":"boom"}'
    expect(faultsOf({ output: `${quiet.output}${line}\n` })).toEqual([`a gateway failed: ${line}`])
    expect(faultsOf({ code: 1, output: 'why' }, 'none')).toEqual(['a gateway ended by itself (1): why\n'])
    expect(faultsOf({ code: 1 }, 'SIGTERM')).toEqual(['a gateway did not drain (1)'])
  })
})
