import { describe, expect, it } from '@jest/globals'
import { admit, readUrl } from './guarded-url.js'
import { AddressRefused, checkedLookup } from './ssrf-guard.js'
import { assertGuardHolds } from './ssrf-self-test.js'

const lookup = checkedLookup
const judge = (url: string): void => {
  admit(readUrl(url), [])
}

/** A guard like the real one but for one form. */
const blindTo = (form: string) => ({
  lookup,
  admit: (url: string): void => {
    if (!url.includes(form)) judge(url)
  },
})

describe('The self-test of the guard', () => {
  it('passes on this platform', async () => {
    await assertGuardHolds()
  })

  it.each(['127.0.0.1/', '2130706433', '0x7f', '64:ff9b', '2002:7f00', '169.254', '@127', ':25', 'file:', '%25lo'])(
    'finds out that %s gets through, and says so',
    async (form) => {
      await expect(assertGuardHolds(blindTo(form))).rejects.toThrow('lets')
    },
  )

  it.each(['10.0.0.1', '::ffff:127.0.0.1'])('finds out that a host at %s gets through', async (address) => {
    const leaky: typeof checkedLookup = (resolve, isAccepted) =>
      lookup(resolve, (candidate) => candidate === address || isAccepted(candidate))
    await expect(assertGuardHolds({ admit: judge, lookup: leaky })).rejects.toThrow(`at ${address} through`)
  })

  it('finds out that nothing gets through', async () => {
    const closed = (): never => {
      throw new AddressRefused('closed')
    }
    await expect(assertGuardHolds({ admit: closed, lookup })).rejects.toThrow(AddressRefused)
    const blocked: typeof checkedLookup = (resolve) => lookup(resolve, () => false)
    await expect(assertGuardHolds({ admit: judge, lookup: blocked })).rejects.toThrow('every host')
  })

  it('does not take a failure of the guard for a refusal', async () => {
    const broken = (): never => {
      throw new TypeError('broken')
    }
    await expect(assertGuardHolds({ admit: broken, lookup })).rejects.toThrow(TypeError)
  })
})
