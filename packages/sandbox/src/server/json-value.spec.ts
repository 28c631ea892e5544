import { describe, expect, it } from '@jest/globals'
import { runModule, UNOPTIMIZED } from '../../../../test/support/module-process.js'
import { isBase64 } from './json-value.js'

describe('Base64', () => {
  it.each(['A', 'AA', 'AAAA', 'AA==', 'AAA=', '+/9z'])('is %j', (text) => {
    expect(isBase64(text)).toBe(true)
  })

  it.each(['', '=', '==', 'A===', 'A-_A', 'A A', 'AAAA\n'])('is not %j', (text) => {
    expect(isBase64(text)).toBe(false)
  })

  it('is read at 14 million characters in a process whose regular expressions are not optimized', () => {
    const values = new URL('../../dist/server/json-value.js', import.meta.url).href
    const script = `
      const { isBase64 } = await import(${JSON.stringify(values)})
      const text = 'A'.repeat(14_000_000)
      console.log(isBase64(text), isBase64(text + '=='), isBase64(text + '-'))`
    expect(runModule(script, { flags: UNOPTIMIZED })).toBe('true true false\n')
  })
})
