import { describe, expect, it } from '@jest/globals'
import { OwnerSeals } from './seals.js'

const SECRET = Buffer.from('a secret of the gateway')
const seals = new OwnerSeals(SECRET, 'team-a')

describe('A signature', () => {
  it('is known as the own one without the text', () => {
    expect(seals.isOwn(seals.sign('thoughts'))).toBe(true)
    expect(seals.isOwn(seals.sign(''))).toBe(true)
  })

  it('is the same for the same text, so that clients may compare', () => {
    expect(seals.sign('thoughts')).toBe(seals.sign('thoughts'))
    expect(seals.sign('thoughts')).not.toBe(seals.sign('other thoughts'))
  })

  it.each([
    ['an upstream', 'EqQBCgIYAhIM'],
    ['nobody', ''],
    ['a forger', `gw1.${Buffer.alloc(24).toString('base64url')}`],
    ['one who knows the form', 'gw1.'],
    ['another owner', new OwnerSeals(SECRET, 'team-b').sign('thoughts')],
    ['another gateway', new OwnerSeals(Buffer.from('other'), 'team-a').sign('thoughts')],
  ])('of %s is not', (_whose, signature) => {
    expect(seals.isOwn(signature)).toBe(false)
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
