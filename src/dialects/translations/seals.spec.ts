import { describe, expect, it } from '@jest/globals'
import { hasMark, madeSignature, OwnerSeals } from './seals.js'

const SECRET = Buffer.from('a secret of the gateway')
const seals = new OwnerSeals(SECRET, 'team-a')

describe('A signature', () => {
  it('of the gateway has its mark, and is another one each time', () => {
    expect(madeSignature()).toMatch(/^gw1\.[\w-]{24}$/)
    expect(hasMark(madeSignature())).toBe(true)
    expect(madeSignature()).not.toBe(madeSignature())
  })

  it.each([
    ['of an upstream', 'EqQBCgIYAhIM'],
    ['that is empty', ''],
    ['that is none', undefined],
    ['of another type', 1],
  ])('%s has no mark', (_whose, signature) => {
    expect(hasMark(signature)).toBe(false)
  })
})

describe('A sealed text', () => {
  const text = JSON.stringify([{ type: 'thinking', thinking: 'é ☃', signature: 'EqQB' }])

  it('is opened for its owner, and shows nothing to others', () => {
    const sealed = seals.seal(text)
    expect(seals.open(sealed)).toBe(text)
    expect(sealed).toMatch(/^gw1\.[\w-]+$/)
    expect(new OwnerSeals(SECRET, 'team-b').open(sealed)).toBeUndefined()
    expect(new OwnerSeals(Buffer.from('other'), 'team-a').open(sealed)).toBeUndefined()
  })

  it('is not opened where it is broken, or was never one', () => {
    const sealed = seals.seal(text)
    const changed = sealed.slice(0, -2) + (sealed.endsWith('AA') ? 'BB' : 'AA')
    for (const broken of [changed, sealed.slice(0, 40), sealed.slice(0, 20), 'gw1.', '', 'gAAAAAB']) {
      expect(seals.open(broken)).toBeUndefined()
    }
  })
})
