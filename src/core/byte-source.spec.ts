import { describe, expect, it } from '@jest/globals'
import { ManualSource } from '../../test/support/byte-streams.js'
import { collect } from './byte-source.js'
import { GatewayError } from './gateway-error.js'
import { callerLeft } from './request-context.js'

const tooLarge = (): GatewayError => new GatewayError('upstream_failed', 'too large')

describe('collect', () => {
  it('resolves to the whole body in order', async () => {
    const source = new ManualSource()
    const whole = collect(source, 6, tooLarge)
    source.data('ab', '', 'cdef')
    source.end()
    expect((await whole).toString()).toBe('abcdef')
  })

  it('resolves to nothing for an empty body', async () => {
    const source = new ManualSource()
    const whole = collect(source, 0, tooLarge)
    source.end()
    expect(await whole).toHaveLength(0)
  })

  it('rejects with the failure of the body', async () => {
    const source = new ManualSource()
    const whole = collect(source, 10, tooLarge)
    source.data('abc')
    source.fail(new GatewayError('upstream_timeout', 'late'))
    await expect(whole).rejects.toMatchObject({ kind: 'upstream_timeout' })
  })

  it('gives up one byte over the maximum, and says so although the source reports its cancellation', async () => {
    class Reporting extends ManualSource {
      override cancel(): void {
        super.cancel()
        this.fail(callerLeft())
      }
    }
    const source = new Reporting()
    const whole = collect(source, 3, tooLarge)
    source.data('abc')
    expect(source.asked).toEqual([])
    source.data('d')
    expect(source.asked).toEqual(['cancel'])
    await expect(whole).rejects.toMatchObject({ kind: 'upstream_failed', message: 'too large' })
  })
})
