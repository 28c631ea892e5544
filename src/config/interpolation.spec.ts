import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ConfigError, FAULTED, FaultList } from './config-fault.js'
import type { Variables } from './variable.js'
import { interpolate } from './interpolation.js'

function faultsOf(document: unknown, env: Variables = {}): string[] {
  const faults = new FaultList()
  interpolate(document, env, faults)
  try {
    faults.throwIfAny()
  } catch (error) {
    return (error as ConfigError).faults.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

function replaced(document: unknown, env: Variables = {}): unknown {
  const faults = new FaultList()
  const result = interpolate(document, env, faults)
  faults.throwIfAny()
  return result
}

describe('interpolation', () => {
  it('puts variables into strings at any depth and leaves everything else as it is', () => {
    const document = { a: ['${ONE}', { b: 'x-${ONE}-${TWO}' }], n: 1.5, t: true, none: null, '${ONE}': 'key' }
    expect(replaced(document, { ONE: '1', TWO: '2' })).toEqual({
      a: ['1', { b: 'x-1-2' }],
      n: 1.5,
      t: true,
      none: null,
      '${ONE}': 'key',
    })
  })

  it.each([
    ['${A}', 'given'],
    ['${A:-other}', 'given'],
    ['${MISSING:-other}', 'other'],
    ['${EMPTY:-other}', 'other'],
    ['${MISSING:-http://x:80/y}', 'http://x:80/y'],
    ['$${A}', '${A}'],
    ['$A $ {A} $$', '$A $ {A} $$'],
    ['${MISSING:-}', null],
    ['a${MISSING:-}b', 'ab'],
    ['', ''],
  ])('turns %j into %j', (text, expected) => {
    expect(replaced({ field: text }, { A: 'given', EMPTY: '' })).toEqual({ field: expected })
  })

  it('keeps any secret intact, whatever characters it holds', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (secret) => {
        expect(replaced(['${SECRET}', 'x${SECRET}'], { SECRET: secret })).toEqual([secret, `x${secret}`])
      }),
    )
  })

  it('names the variable and the path when a variable is not set or empty, and goes on', () => {
    const document = { auth: { keys: [{ key: '${TEAM_KEY}' }] }, 'odd key': '${EMPTY}', last: '${A}${B}' }
    expect(faultsOf(document, { EMPTY: '' })).toEqual([
      'auth.keys[0].key: the environment variable TEAM_KEY is not set',
      '["…"]: the environment variable EMPTY is not set',
      'last: the environment variable A is not set',
      'last: the environment variable B is not set',
    ])
  })

  it.each(['${', '${}', '${a-b}', '${A', '${A:?no}', '${A:-${B}}', '${ A }'])('refuses the placeholder %j', (text) => {
    const faults = faultsOf({ field: text }, { A: 'x', B: 'y' })
    expect(faults).toEqual([expect.stringMatching(/^field: holds a malformed placeholder/)])
  })

  it('marks a faulty value so that nobody reports it twice', () => {
    expect(interpolate(['${MISSING}'], {}, new FaultList())).toEqual([FAULTED])
  })

  it('keeps a __proto__ key an ordinary key', () => {
    const document: unknown = JSON.parse('{"__proto__":{"polluted":"${A}"}}')
    const result = replaced(document, { A: 'x' }) as object
    expect(Object.keys(result)).toEqual(['__proto__'])
    expect('polluted' in result).toBe(false)
  })

  it('ends at a value that contains itself', () => {
    const loop: unknown[] = []
    loop.push(loop)
    expect(faultsOf({ loop })).toEqual([
      expect.stringMatching(/^loop(\[0\])+: must not be nested deeper than 32 levels$/),
    ])
  })

  it('ends when shared parts multiply', () => {
    let bomb: unknown = Array.from({ length: 100 }, () => 'x')
    for (let level = 0; level < 6; level++) bomb = Array.from({ length: 100 }, () => bomb)
    expect(faultsOf({ bomb })).toEqual(['document: must not hold more than 200000 values'])
  })
})
